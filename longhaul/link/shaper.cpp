#include "longhaul/link/shaper.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr Seconds kSliceTime{0.002};

// Twice what fills a loop, so that the line never runs dry while the sender hears of free room.
std::size_t queue_limit_of(const RateTrace& rate, Seconds latency) {
  constexpr double kLeastBytes = 64 * 1024;
  const double loop_bytes = rate.mean().bytes_per_second * 2 * latency.count();
  return static_cast<std::size_t>(std::max(kLeastBytes, 2 * loop_bytes));
}

}  // namespace

Shaper::Shaper(RateTrace rate, Seconds latency)
    : rate_(std::move(rate)), latency_(latency), queue_limit_(queue_limit_of(rate_, latency)) {
  LONGHAUL_CHECK_GE(latency.count(), 0.0);
}

void Shaper::push(Seconds now, ConnectionId connection, std::size_t bytes, Seconds ready_since) {
  advance(now);
  Waiting& waiting = waiting_[connection];
  waiting.bytes += bytes;
  queue_up(std::min(now, ready_since), connection, waiting);
}

void Shaper::push_end(Seconds now, ConnectionId connection) {
  advance(now);
  Waiting& waiting = waiting_[connection];
  waiting.has_end = true;
  queue_up(now, connection, waiting);
}

std::optional<Shaper::Delivery> Shaper::pop(Seconds now) {
  advance(now);
  if (is_held_ || in_flight_.empty() || in_flight_.front().due > now) return std::nullopt;
  const Delivery delivery = in_flight_.front();
  in_flight_.pop_front();
  return delivery;
}

std::optional<Seconds> Shaper::next_event() const {
  std::optional<Seconds> next;
  if (is_held_) return next;
  if (in_service_) next = in_service_->due;
  if (!in_flight_.empty()) next = std::min(next.value_or(Seconds::max()), in_flight_.front().due);
  return next;
}

std::size_t Shaper::room(Seconds now, ConnectionId connection) {
  advance(now);
  std::size_t sharers = 1;
  std::size_t mine = 0;
  for (const auto& [id, waiting] : waiting_) {
    if (id == connection) {
      mine = waiting.bytes;
    } else if (waiting.bytes > 0) {
      ++sharers;
    }
  }
  // Never less than a slice: whoever has something to send always has it ready for its turn.
  const std::size_t share = std::max(kMaxSliceBytes, queue_limit_ / sharers);
  return share > mine ? share - mine : 0;
}

std::size_t Shaper::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [id, waiting] : waiting_) bytes += waiting.bytes;
  return bytes;
}

void Shaper::set_blocked(Seconds now, ConnectionId connection, bool is_blocked) {
  advance(now);
  const auto found = waiting_.find(connection);
  if (found == waiting_.end()) return;
  found->second.is_blocked = is_blocked;
  queue_up(now, connection, found->second);
}

void Shaper::remove(ConnectionId connection) { waiting_.erase(connection); }

void Shaper::hold(Seconds now) {
  advance(now);
  is_held_ = true;
}

void Shaper::release(Seconds now) {
  if (!is_held_) return;
  is_held_ = false;
  serve_again(now);
}

void Shaper::restart_trace(Seconds now) {
  advance(now);
  trace_start_ = now;
  if (!is_held_) serve_again(now);
}

void Shaper::advance(Seconds now) {
  while (!is_held_ && in_service_ && in_service_->due <= now) {
    Delivery slice = *in_service_;
    in_service_.reset();
    free_at_ = slice.due;
    slice.due = free_at_ + latency_;
    in_flight_.push_back(slice);
    // Only now behind those who came while it was served: they wait for one slice of it, not two.
    const auto found = waiting_.find(slice.connection);
    if (found != waiting_.end()) queue_up(free_at_, slice.connection, found->second);
    serve_next(free_at_);
  }
}

// Gives the connection a turn if it can use one, and serves it at once where the line is idle.
void Shaper::queue_up(Seconds ready_at, ConnectionId connection, Waiting& waiting) {
  if (waiting.bytes == 0 && !waiting.has_end) return;
  if (waiting.is_blocked || waiting.has_turn) return;
  if (in_service_ && in_service_->connection == connection) return;  // when that has passed
  waiting.has_turn = true;
  turns_.push_back(connection);
  if (!is_held_ && !in_service_) serve_next(ready_at);
}

void Shaper::serve_next(Seconds start) {
  start = std::max({start, free_at_, trace_start_});
  while (!turns_.empty() && !in_service_) {
    const ConnectionId connection = turns_.front();
    turns_.pop_front();
    const auto found = waiting_.find(connection);
    if (found == waiting_.end()) continue;  // removed
    Waiting& waiting = found->second;
    waiting.has_turn = false;
    if (waiting.is_blocked) continue;
    const std::size_t bytes = std::min(waiting.bytes, slice_bytes(start));
    waiting.bytes -= bytes;
    const bool is_end = waiting.bytes == 0 && std::exchange(waiting.has_end, false);
    in_service_ = {
        .connection = connection, .bytes = bytes, .is_end = is_end, .due = finish(start, bytes)};
  }
}

// After the line stood still or its rate changed.
void Shaper::serve_again(Seconds now) {
  free_at_ = std::max(free_at_, now);
  if (in_service_) {
    in_service_->due = finish(now, in_service_->bytes);
  } else {
    serve_next(now);
  }
}

std::size_t Shaper::slice_bytes(Seconds start) const {
  const double bytes = rate_.at(start - trace_start_).bytes_per_second * kSliceTime.count();
  return static_cast<std::size_t>(
      std::clamp(bytes, static_cast<double>(kMinSliceBytes), static_cast<double>(kMaxSliceBytes)));
}

Seconds Shaper::finish(Seconds start, std::size_t bytes) const {
  return trace_start_ + rate_.finish(start - trace_start_, static_cast<double>(bytes));
}

}  // namespace longhaul
