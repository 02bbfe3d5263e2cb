#include "longhaul/hub/peer.h"

#include <utility>

#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/random_id.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostWaitingFrames = 10'000;

Peer::Progress position_in(const v1::Join& join) {
  if (join.is_fresh()) return {.is_fresh = true};
  Peer::Progress progress{.next_mean = round_from(join.next_round()),
                          .first_step = join.first_step(),
                          .step = join.step()};
  if (join.has_own_until()) progress.own_until = round_from(join.own_until());
  return progress;
}

}  // namespace

Peer::Peer(const v1::Join& join, std::size_t slot, StreamId control, StreamPtr stream,
           Lanes lanes_of_it)
    : lanes(std::move(lanes_of_it)),
      progress(position_in(join)),
      name_(join.name()),
      slot_(slot),
      id_(random_id()),
      announced_lanes_(join.lanes()),
      control_(control),
      stream_(std::move(stream)) {}

bool Peer::send(Frame frame) {
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

void Peer::on_control_written() {
  is_writing_ = false;
  if (outgoing_.empty()) return;
  Frame next = std::move(outgoing_.front());
  outgoing_.pop_front();
  (void)send(std::move(next));
}

void Peer::close() {
  if (std::exchange(is_closed_, true)) return;
  lanes.close();
  stream_->close();
}

}  // namespace longhaul
