// The common part of both ends of a gRPC stream: one read and one write at a time, each answered,
// and one end. Only for .cpp files of this module.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// A stream over a gRPC reactor, which deletes itself some time after finish(). A write that is
// under way must end before finish(); cancel() makes it end, also on a link that is cut.
template <typename Reactor>
class GrpcStream final : public Stream {
 public:
  explicit GrpcStream(Reactor& reactor, std::string peer_name = {})
      : reactor_(reactor), peer_name_(std::move(peer_name)) {}

  void read() override {
    const std::scoped_lock lock(mutex_);
    if (!is_ended_) reactor_.start_read();
  }
  void write(Frame frame) override {
    const std::scoped_lock lock(mutex_);
    if (is_ended_) return;
    is_writing_ = true;
    reactor_.start_write(std::move(frame));
  }
  // The write that was under way. False: the stream has ended.
  bool written(bool ok) {
    const std::scoped_lock lock(mutex_);
    is_writing_ = false;
    if (ok && !is_ended_) return true;
    is_ended_ = true;
    reactor_.finish();
    return false;
  }
  // Only the first call counts.
  void close() override {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_ended_, true)) return;
    if (is_writing_) {
      reactor_.cancel();
    } else {
      reactor_.finish();
    }
  }
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }

 private:
  // std::mutex: gRPC's headers define the names of our annotations for themselves.
  std::mutex mutex_;
  Reactor& reactor_;  // there until finish()
  const std::string peer_name_;
  bool is_writing_ = false;  // under the lock
  bool is_ended_ = false;    // under the lock
};

// For the stream's user: when it lets go, the stream ends.
template <typename Reactor>
StreamPtr handle_of(const std::shared_ptr<GrpcStream<Reactor>>& stream) {
  return {stream.get(), [stream](Stream* /*same*/) { stream->close(); }};
}

// Keeps the library's own threads until the process ends: gRPC 1.51 frees them twice if the last
// stream ends while the next one begins. Every call after the first does nothing.
void keep_grpc_up();

inline int milliseconds(Seconds time) { return static_cast<int>(1000 * time.count()); }

// Bytes that a stream may hold unread, and the largest frame that is accepted.
constexpr int kWindowBytes = 8 * 1024 * 1024;
constexpr int kMostFrameBytes = 2 * 1024 * 1024;

}  // namespace longhaul
