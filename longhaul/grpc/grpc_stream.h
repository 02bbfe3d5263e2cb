// What both ends of a gRPC stream have in common: one read and one write at a time, each answered,
// and one end. Only for .cpp files of this module.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "longhaul/transport/stream.h"

namespace longhaul {

// Between a gRPC reactor, which deletes itself, and the stream that its user holds. `Reactor` has
// start_read, start_write and end, which gRPC allows until end was called.
template <typename Reactor>
class GrpcLine {
 public:
  explicit GrpcLine(Reactor* reactor) : reactor_(reactor) {}

  void read() {
    const std::scoped_lock lock(mutex_);
    if (reactor_ != nullptr) reactor_->start_read();
  }
  void write(Frame frame) {
    const std::scoped_lock lock(mutex_);
    if (reactor_ != nullptr) reactor_->start_write(std::move(frame));
  }
  // Only the first call counts.
  void end() {
    const std::scoped_lock lock(mutex_);
    if (reactor_ != nullptr) std::exchange(reactor_, nullptr)->end();
  }

 private:
  // std::mutex: gRPC's headers define the names of our annotations for themselves.
  std::mutex mutex_;
  Reactor* reactor_;  // under the lock
};

template <typename Reactor>
class GrpcStream final : public Stream {
 public:
  GrpcStream(std::shared_ptr<GrpcLine<Reactor>> line, std::string peer_name)
      : line_(std::move(line)), peer_name_(std::move(peer_name)) {}
  ~GrpcStream() override { line_->end(); }
  GrpcStream(const GrpcStream&) = delete;
  GrpcStream& operator=(const GrpcStream&) = delete;

  void read() override { line_->read(); }
  void write(Frame frame) override { line_->write(std::move(frame)); }
  void close() override { line_->end(); }
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }

 private:
  std::shared_ptr<GrpcLine<Reactor>> line_;  // shared with the reactor
  std::string peer_name_;
};

// Bytes that a stream may hold unread, and the largest frame that is accepted.
constexpr int kWindowBytes = 8 * 1024 * 1024;
constexpr int kMostFrameBytes = 2 * 1024 * 1024;

}  // namespace longhaul
