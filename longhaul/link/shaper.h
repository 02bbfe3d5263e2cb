// One direction of an emulated link as arithmetic. Bytes of several connections take turns on one
// line at its rate and are due a latency later. No clock, no socket, no bytes: only counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "longhaul/base/units.h"
#include "longhaul/link/rate_trace.h"

namespace longhaul {

// Connections take turns of one slice each: so many bytes as pass in two milliseconds, within these
// bounds. A ping waits for at most one slice of every other connection, not for their queues.
inline constexpr std::size_t kMinSliceBytes = 256;
inline constexpr std::size_t kMaxSliceBytes = 4096;

// Delays bytes as a line would.
// Times are on the caller's clock and must not go back from one call to the next. A slice starts
// when the one before it has passed, however late the caller looks: no time of the line is lost.
class Shaper {
 public:
  using ConnectionId = std::uint64_t;

  struct Delivery {
    ConnectionId connection = 0;
    std::size_t bytes = 0;
    bool is_end = false;  // after these bytes the connection has ended
    Seconds due{};
  };

  // The trace starts at time 0. Precondition: `latency` is not negative.
  Shaper(RateTrace rate, Seconds latency);

  // Bytes that are handed over now. They could have been since `ready_since`, had there been room:
  // an idle line serves them as if it had been free to take them then.
  void push(Seconds now, ConnectionId connection, std::size_t bytes, Seconds ready_since);
  // The connection's last byte has been pushed. Its end passes behind it and takes no time.
  void push_end(Seconds now, ConnectionId connection);

  // The next of what is due by now, in the order in which it passed the line.
  std::optional<Delivery> pop(Seconds now);
  // When the next slice has passed or is due; nothing while all is quiet.
  [[nodiscard]] std::optional<Seconds> next_event() const;

  // How many bytes should be pushed at most: a fair share of queue_limit() less what waits already.
  [[nodiscard]] std::size_t room(Seconds now, ConnectionId connection);
  [[nodiscard]] std::size_t queue_limit() const { return queue_limit_; }
  [[nodiscard]] Seconds latency() const { return latency_; }
  [[nodiscard]] std::size_t waiting_bytes() const;

  // A blocked connection gets no turn: its receiver does not read.
  void set_blocked(Seconds now, ConnectionId connection, bool is_blocked);
  // Forgets what waits. Bytes that are in the line already still come out.
  void remove(ConnectionId connection);

  // While held, nothing passes and nothing is due. Bytes that were due meanwhile are due at the
  // release, and a slice that was passing starts anew.
  void hold(Seconds now);
  void release(Seconds now);
  // Time 0 of the trace is now.
  void restart_trace(Seconds now);

 private:
  struct Waiting {
    std::size_t bytes = 0;
    bool has_end = false;
    bool is_blocked = false;
    bool has_turn = false;
  };

  void advance(Seconds now);
  void queue_up(Seconds ready_at, ConnectionId connection, Waiting& waiting);
  void serve_next(Seconds start);
  void serve_again(Seconds now);
  [[nodiscard]] std::size_t slice_bytes(Seconds start) const;
  [[nodiscard]] Seconds finish(Seconds start, std::size_t bytes) const;

  RateTrace rate_;
  Seconds latency_;
  std::size_t queue_limit_;
  Seconds trace_start_{};
  Seconds free_at_{};  // when the last slice had passed
  bool is_held_ = false;
  std::map<ConnectionId, Waiting> waiting_;
  std::deque<ConnectionId> turns_;      // connections with something to send, the next one first
  std::optional<Delivery> in_service_;  // passes the line, until `due`
  std::deque<Delivery> in_flight_;      // what has passed it and is not due
};

}  // namespace longhaul
