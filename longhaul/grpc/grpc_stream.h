// The common part of both ends of a gRPC stream: one read and one write at a time, each answered,
// and one end. Only for .cpp files of this module.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// Between a gRPC reactor, which deletes itself some time after finish(), and the stream that its
// user holds. A write that is under way must end before finish(); cancel() makes it end, also on a
// link that is cut.
template <typename Reactor>
class GrpcLine {
 public:
  explicit GrpcLine(Reactor& reactor) : reactor_(reactor) {}

  void read() {
    const std::scoped_lock lock(mutex_);
    if (!is_ended_) reactor_.start_read();
  }
  void write(Frame frame) {
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
  void end() {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_ended_, true)) return;
    if (is_writing_) {
      reactor_.cancel();
    } else {
      reactor_.finish();
    }
  }

 private:
  // std::mutex: gRPC's headers define the names of our annotations for themselves.
  std::mutex mutex_;
  Reactor& reactor_;         // there until finish()
  bool is_writing_ = false;  // under the lock
  bool is_ended_ = false;    // under the lock
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

// Keeps the library's own threads until the process ends: gRPC 1.51 frees them twice if the last
// stream ends while the next one begins. Every call after the first does nothing.
void keep_grpc_up();

inline int milliseconds(Seconds time) { return static_cast<int>(1000 * time.count()); }

// Bytes that a stream may hold unread, and the largest frame that is accepted.
constexpr int kWindowBytes = 8 * 1024 * 1024;
constexpr int kMostFrameBytes = 2 * 1024 * 1024;

}  // namespace longhaul
