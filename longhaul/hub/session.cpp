#include "longhaul/hub/session.h"

#include <utility>

namespace longhaul {
namespace {

constexpr std::size_t kMostWaitingFrames = 10'000;

}  // namespace

Session::Session(Identity identity, StreamId control, StreamPtr stream, const CargoOptions& limits,
                 TimePoint now)
    : lanes(limits, identity.rate),
      identity_(std::move(identity)),
      control_(control),
      stream_(std::move(stream)),
      last_heard_(now) {}

bool Session::send(Frame frame) {
  if (is_closed_) return false;
  if (is_writing_) {
    is_overrun_ |= outgoing_.size() >= kMostWaitingFrames;
    if (is_overrun_) return false;
    outgoing_.push_back(std::move(frame));
    return true;
  }
  is_writing_ = true;
  stream_->write(std::move(frame));
  return true;
}

void Session::on_control_written() {
  is_writing_ = false;
  if (outgoing_.empty()) return;
  Frame next = std::move(outgoing_.front());
  outgoing_.pop_front();
  (void)send(std::move(next));
}

void Session::close() {
  if (std::exchange(is_closed_, true)) return;
  lanes.close();
  stream_->close();
}

}  // namespace longhaul
