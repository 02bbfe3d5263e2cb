#include "longhaul/hub/probe_guest.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kAllowance = std::uint64_t{4} << 30U;
constexpr std::size_t kMostAnswers = 16;

Error too_much(const std::string& what) { return {ErrorCode::kMismatch, "a probe: " + what}; }

}  // namespace

ProbeGuest::ProbeGuest(StreamPtr stream, TimePoint now)
    : stream_(std::move(stream)), last_moved_(now), allowance_(kAllowance) {
  Frame ready;
  ready.mutable_probed();
  answer(std::move(ready));
  stream_->read();
}

Status ProbeGuest::on_frame(const Frame& frame, TimePoint now) {
  last_moved_ = now;
  if (answers_.size() >= kMostAnswers) return too_much("it does not read what it asks for");
  if (frame.has_ping()) {
    Frame pong;
    pong.mutable_pong()->set_id(frame.ping().id());
    answer(std::move(pong));
  } else if (frame.has_send_probe()) {
    const std::uint64_t bytes = frame.send_probe().bytes();
    if (total_ > 0 || bytes < 1 || bytes > std::min(allowance_, kMostProbeBytes))
      return too_much("more bytes than a guest may ask for");
    allowance_ -= bytes;
    total_ = bytes;
    sent_ = 0;
    write_next();
  } else if (frame.has_chunk()) {
    Status taken = on_chunk(frame.chunk(), now);
    if (!taken.ok()) return taken;
  } else {
    return too_much("a frame that has no place in it");
  }
  stream_->read();
  return Done{};
}

Status ProbeGuest::on_chunk(const v1::Chunk& chunk, TimePoint now) {
  const std::uint64_t bytes = chunk.data().size();
  if (chunk.cargo() != v1::CARGO_PROBE || bytes < 1 || chunk.total() > kMostProbeBytes ||
      bytes > allowance_ || bytes > chunk.total() - std::min(received_, chunk.total()))
    return too_much("a chunk out of range");
  allowance_ -= bytes;
  if (received_ == 0) {
    first_chunk_ = bytes;
    first_at_ = now;
  }
  received_ += bytes;
  if (received_ < chunk.total()) return Done{};
  Frame frame;
  frame.mutable_probed()->set_bytes(received_ - first_chunk_);
  frame.mutable_probed()->set_duration_s(Seconds(now - first_at_).count());
  received_ = 0;
  answer(std::move(frame));
  return Done{};
}

void ProbeGuest::on_written(TimePoint now) {
  last_moved_ = now;
  is_writing_ = false;
  write_next();
}

void ProbeGuest::answer(Frame frame) {
  answers_.push_back(std::move(frame));
  write_next();
}

void ProbeGuest::write_next() {
  if (is_writing_ || (answers_.empty() && total_ == 0)) return;
  is_writing_ = true;
  if (answers_.empty()) return stream_->write(next_chunk());
  Frame next = std::move(answers_.front());
  answers_.pop_front();
  stream_->write(std::move(next));
}

Frame ProbeGuest::next_chunk() {
  Frame frame = probe_chunk(total_, sent_);
  sent_ += frame.chunk().data().size();
  if (sent_ == total_) total_ = 0;
  return frame;
}

}  // namespace longhaul
