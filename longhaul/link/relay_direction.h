// One direction of a Relay. It reads from the senders of all its connections, asks the shaper when
// each slice is due, and writes it to the receivers.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <system_error>

#include "longhaul/base/clock.h"
#include "longhaul/link/byte_fifo.h"
#include "longhaul/link/shaper.h"

namespace longhaul {

class RelayDirection {
 public:
  using ConnectionId = Shaper::ConnectionId;
  // Comes on the loop and never from within a call of this class, once for each connection. With an
  // error, either side is gone. Without, the sender ended, and the receiver has all and knows that.
  using OnClosing = std::function<void(ConnectionId, const std::error_code&)>;

  RelayDirection(asio::io_context& context, Shaper shaper, OnClosing on_closing);

  // Both sockets stay until remove_on_loop().
  void add_on_loop(ConnectionId id, asio::ip::tcp::socket& from, asio::ip::tcp::socket& to);
  void remove_on_loop(ConnectionId id);

  void cut_on_loop();
  void restore_on_loop();
  void restart_trace_on_loop();

  // Bytes that were written to receivers.
  [[nodiscard]] std::uint64_t passed_on_loop() const { return passed_; }

 private:
  struct Lane {
    asio::ip::tcp::socket* from = nullptr;
    asio::ip::tcp::socket* to = nullptr;
    ByteFifo bytes;             // first those that are due, then those that the shaper counts
    std::size_t due_bytes = 0;  // not written yet
    bool is_end_read = false;
    bool is_end_due = false;
    bool is_closed = false;              // on_closing_ is under way
    bool awaits_bytes = false;           // the sender has none
    bool awaits_receiver = false;        // the receiver takes none
    std::optional<Seconds> ready_since;  // the sender has bytes for which there was no room
  };

  [[nodiscard]] Seconds now() const;
  void pump_on_loop();
  void read_on_loop(Seconds now, ConnectionId id, Lane& lane);
  void deliver_on_loop(Seconds now);
  void write_on_loop(Seconds now, ConnectionId id, Lane& lane);
  void await_on_loop(asio::ip::tcp::socket& socket, asio::ip::tcp::socket::wait_type event,
                     ConnectionId id, bool Lane::*flag);
  void close_on_loop(ConnectionId id, Lane& lane, const std::error_code& failure);
  void arm_timer_on_loop(Seconds now);

  asio::io_context& context_;
  Shaper shaper_;
  OnClosing on_closing_;
  const Seconds shortest_wait_;
  const TimePoint start_;
  asio::steady_timer timer_;
  bool is_cut_ = false;
  std::map<ConnectionId, Lane> lanes_;
  std::uint64_t passed_ = 0;
};

}  // namespace longhaul
