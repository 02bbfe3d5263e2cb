// The events of many streams as values in one mailbox: how a loop hears of its streams.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "longhaul/base/mailbox.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

using StreamId = std::uint64_t;

struct StreamOpened {
  StreamPtr stream;
};
struct FrameArrived {
  Frame frame;
};
struct FrameWritten {};
struct StreamClosed {
  Error why;
};

struct StreamEvent {
  StreamId stream = 0;
  std::variant<StreamOpened, FrameArrived, FrameWritten, StreamClosed> what;
};

// Where a loop's events go. It must not block: a loop that writes hears of it from inside its own
// call.
class StreamInbox {
 public:
  virtual ~StreamInbox() = default;
  virtual void put(StreamEvent event) = 0;
};

// Passes the events of one stream on. Shared ownership of the inbox: streams end when they want.
class StreamPost final : public StreamEvents {
 public:
  StreamPost(StreamId id, std::shared_ptr<StreamInbox> inbox) : id_(id), inbox_(std::move(inbox)) {}

  void on_frame(Frame frame) override { put(FrameArrived{std::move(frame)}); }
  void on_written() override { put(FrameWritten{}); }
  void on_closed(const Error& why) override { put(StreamClosed{why}); }

 private:
  template <typename What>
  void put(What what) {
    inbox_->put({.stream = id_, .what = std::move(what)});
  }

  StreamId id_;
  std::shared_ptr<StreamInbox> inbox_;
};

}  // namespace longhaul
