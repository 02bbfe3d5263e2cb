// One replica's connection as the hub sees it: its control stream, its lanes, and how far it has
// been served. Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "longhaul/round/round_id.h"
#include "longhaul/transport/lanes.h"

namespace longhaul {

// A duration in seconds that a peer tells is plausible: neither endless nor nothing, and a number.
constexpr bool is_plausible(double seconds) { return seconds > 1e-9 && seconds < 1e6; }

// While a model is on its way, the log says so often how far it is.
inline constexpr Seconds kNewsOfModelEvery{10.0};

class Peer {
 public:
  // `join` says who it is and where it stands; `lanes` are empty.
  Peer(const v1::Join& join, std::size_t slot, StreamId control, StreamPtr stream, Lanes lanes);
  ~Peer() { close(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t slot() const { return slot_; }
  // Secret: its lanes present it.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] StreamId control() const { return control_; }
  // All lanes that it announced are here.
  [[nodiscard]] bool is_connected() const { return lanes.count() >= announced_lanes_; }

  // On the control stream, in order. A peer that does not read for long is to be given up: false,
  // and is_overrun().
  bool send(Frame frame);
  [[nodiscard]] bool is_overrun() const { return is_overrun_; }
  void on_control_written();
  void read_control() { stream_->read(); }
  void close();

  // Anything that came counts as a sign of life.
  void heard(TimePoint now) { last_heard_ = now; }
  [[nodiscard]] TimePoint last_heard() const { return last_heard_; }

  Lanes lanes;  // NOLINT(*-non-private-member-*): a part of its own, used as it is

  // How far it has been served.
  struct Progress {
    bool is_fresh = false;             // it starts from the initial model
    bool is_asked_for_state = false;   // to send that model
    bool has_sent_state = false;       // it has come, and is being checked
    bool awaits_snapshot = false;      // it is given one as soon as there is one
    bool is_served = false;            // gets means
    bool is_loaded = false;            // has its state
    TimePoint next_news;               // of the model that is on its way, to it or from it
    bool is_enrolled = false;          // member of rounds
    RoundId next_mean;                 // to be sent
    std::uint64_t first_step = 0;      // it can submit from this one on
    std::uint64_t step = 0;            // it stood there when it came, or later
    std::optional<RoundId> own_until;  // it does not know its own updates from this one on
    std::uint32_t restarts = 0;        // that it was sent
    // Digests of what it sent on this connection, by round: payloads that it has at hand.
    std::map<RoundId, std::uint64_t> own;
  };
  bool is_announced = false;  // that it is connected
  std::size_t unchecked = 0;  // updates that have come and are being checked
  Progress progress;          // NOLINT(*-non-private-member-*): plain data of the loop

 private:
  std::string name_;
  std::size_t slot_;
  std::uint64_t id_;
  std::size_t announced_lanes_;
  StreamId control_;
  StreamPtr stream_;
  std::deque<Frame> outgoing_;
  bool is_writing_ = false;
  bool is_closed_ = false;
  bool is_overrun_ = false;
  TimePoint last_heard_;
};

}  // namespace longhaul
