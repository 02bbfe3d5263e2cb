#include "longhaul/transport/lanes.h"

#include <utility>

namespace longhaul {

Lanes::Lanes(const CargoOptions& limits, const std::optional<Bandwidth>& rate) : incoming_(limits) {
  if (rate) cap_.emplace(*rate);
}

void Lanes::add(StreamId id, StreamPtr stream) {
  Lane& lane = lanes_[id];
  lane.stream = std::move(stream);
  read_from(lane);
  write_on(lane);
}

void Lanes::read_from(Lane& lane) const {
  lane.is_to_read = !is_reading_;
  if (is_reading_) lane.stream->read();
}

void Lanes::set_reading(bool is_reading) {
  if (std::exchange(is_reading_, is_reading) || !is_reading) return;
  for (auto& [id, lane] : lanes_) {
    if (lane.is_to_read) read_from(lane);
  }
}

void Lanes::write_on(Lane& lane) {
  if (lane.is_writing || outgoing_.is_empty() || (cap_ && !cap_->may_send())) return;
  lane.is_writing = true;
  Frame frame = cap_ ? outgoing_.next_chunk(cap_->most_chunk_bytes()) : outgoing_.next_chunk();
  if (cap_) cap_->sent(frame.chunk().data().size());
  lane.stream->write(std::move(frame));
}

void Lanes::on_tick(TimePoint now) {
  if (!cap_) return;
  cap_->on_tick(now);
  for (auto& [id, lane] : lanes_) write_on(lane);
}

void Lanes::send(TransferId id, ByteRope bytes, std::optional<v1::Attendance> attendance) {
  outgoing_.add(id, std::move(bytes), std::move(attendance));
  for (auto& [lane_id, lane] : lanes_) write_on(lane);
}

void Lanes::on_written(StreamId id) {
  const auto lane = lanes_.find(id);
  if (lane == lanes_.end()) return;
  lane->second.is_writing = false;
  write_on(lane->second);
}

Result<std::optional<Arrival>> Lanes::on_chunk(StreamId id, v1::Chunk& chunk, TimePoint now) {
  const auto lane = lanes_.find(id);
  if (lane == lanes_.end()) return std::optional<Arrival>();
  Result<std::optional<Arrival>> arrival = incoming_.take(chunk, now);
  if (arrival.ok()) read_from(lane->second);
  return arrival;
}

void Lanes::close() {
  for (auto& [id, lane] : lanes_) lane.stream->close();
  lanes_.clear();
  outgoing_.clear();
  incoming_.clear();
}

}  // namespace longhaul
