#include "longhaul/link/relay_direction.h"

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <span>
#include <system_error>
#include <utility>

namespace longhaul {
namespace {

using asio::ip::tcp;

// A fast link has a slice due every few microseconds. Waking up this often at most costs no rate,
// as the shaper counts from slice to slice, and adds no more than this to a latency: a hundredth of
// a long one, as every time costs a processor that replicas need.
Seconds shortest_wait_for(Seconds latency) {
  return std::clamp(latency / 100, Seconds(200e-6), Seconds(1e-3));
}

constexpr std::size_t kReadBytes = 65'536;

}  // namespace

RelayDirection::RelayDirection(asio::io_context& context, Shaper shaper, OnClosing on_closing)
    : context_(context),
      shaper_(std::move(shaper)),
      on_closing_(std::move(on_closing)),
      shortest_wait_(shortest_wait_for(shaper_.latency())),
      start_(std::chrono::steady_clock::now()),
      timer_(context) {}

void RelayDirection::add_on_loop(ConnectionId id, tcp::socket& from, tcp::socket& to) {
  Lane& lane = lanes_[id];
  lane.from = &from;
  lane.to = &to;
  pump_on_loop();
}

void RelayDirection::remove_on_loop(ConnectionId id) {
  shaper_.remove(id);
  lanes_.erase(id);
}

void RelayDirection::cut_on_loop() {
  is_cut_ = true;
  shaper_.hold(now());
  timer_.cancel();
}

void RelayDirection::restore_on_loop() {
  is_cut_ = false;
  shaper_.release(now());
  pump_on_loop();
}

void RelayDirection::restart_trace_on_loop() {
  shaper_.restart_trace(now());
  pump_on_loop();
}

Seconds RelayDirection::now() const { return std::chrono::steady_clock::now() - start_; }

// Does what can be done by now.
void RelayDirection::pump_on_loop() {
  if (is_cut_) return;
  const Seconds now = this->now();
  for (auto& [id, lane] : lanes_) read_on_loop(now, id, lane);
  deliver_on_loop(now);
  for (auto& [id, lane] : lanes_) write_on_loop(now, id, lane);
  arm_timer_on_loop(now);
}

// Once per pump, however much the sender has: what is due must not wait for it.
void RelayDirection::read_on_loop(Seconds now, ConnectionId id, Lane& lane) {
  if (lane.is_closed || lane.is_end_read || lane.awaits_bytes) return;
  const std::size_t room = shaper_.room(now, id);
  if (room == 0) {  // the next slice that passes makes some
    if (!lane.ready_since) lane.ready_since = now;
    return;
  }
  const std::span<std::byte> space = lane.bytes.space(std::min(room, kReadBytes));
  std::error_code failure;
  const std::size_t count = lane.from->read_some(asio::buffer(space.data(), space.size()), failure);
  if (failure == asio::error::eof) {
    lane.is_end_read = true;
    return shaper_.push_end(now, id);
  }
  if (failure && failure != asio::error::would_block) return close_on_loop(id, lane, failure);
  if (!failure) {
    lane.bytes.append(count);
    shaper_.push(now, id, count, lane.ready_since.value_or(now));
  }
  const bool has_more = !failure && lane.from->available(failure) > 0;
  lane.ready_since = has_more ? std::optional(lane.ready_since.value_or(now)) : std::nullopt;
  await_on_loop(*lane.from, tcp::socket::wait_read, id, &Lane::awaits_bytes);
}

void RelayDirection::deliver_on_loop(Seconds now) {
  while (const std::optional<Shaper::Delivery> delivery = shaper_.pop(now)) {
    const auto found = lanes_.find(delivery->connection);
    if (found == lanes_.end()) continue;  // removed while under way
    found->second.due_bytes += delivery->bytes;
    found->second.is_end_due |= delivery->is_end;
  }
}

void RelayDirection::write_on_loop(Seconds now, ConnectionId id, Lane& lane) {
  if (lane.is_closed) return;
  while (lane.due_bytes > 0 && !lane.awaits_receiver) {
    const ByteView due = lane.bytes.front(lane.due_bytes);
    std::error_code failure;
    const std::size_t count = lane.to->write_some(asio::buffer(due.data(), due.size()), failure);
    if (failure == asio::error::would_block) {
      await_on_loop(*lane.to, tcp::socket::wait_write, id, &Lane::awaits_receiver);
    } else if (failure) {
      return close_on_loop(id, lane, failure);
    }
    lane.bytes.drop(count);
    lane.due_bytes -= count;
    passed_ += count;
  }
  shaper_.set_blocked(now, id, lane.due_bytes > shaper_.queue_limit());
  if (lane.due_bytes > 0 || !lane.is_end_due) return;
  std::error_code failure;
  lane.to->shutdown(tcp::socket::shutdown_send, failure);
  close_on_loop(id, lane, failure);
}

// Sets the flag until the event has come.
void RelayDirection::await_on_loop(tcp::socket& socket, tcp::socket::wait_type event,
                                   ConnectionId id, bool Lane::*flag) {
  lanes_.at(id).*flag = true;
  socket.async_wait(event, [this, id, flag](const std::error_code&) {
    const auto found = lanes_.find(id);
    if (found == lanes_.end()) return;  // removed, and its socket with it
    found->second.*flag = false;
    pump_on_loop();
  });
}

void RelayDirection::close_on_loop(ConnectionId id, Lane& lane, const std::error_code& failure) {
  lane.is_closed = true;
  asio::post(context_, [this, id, failure] { on_closing_(id, failure); });
}

void RelayDirection::arm_timer_on_loop(Seconds now) {
  const std::optional<Seconds> event = shaper_.next_event();
  if (!event) return;
  timer_.expires_at(time_after(start_, std::max(*event, now + shortest_wait_)));
  timer_.async_wait([this](const std::error_code& cancelled) {
    if (!cancelled) pump_on_loop();
  });
}

}  // namespace longhaul
