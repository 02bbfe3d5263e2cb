// The hub's knowledge of its replicas' links, for planners: it measures what passes, and probes a
// link whose own messages are too small to tell. One probe at a time is on its way in a direction.
// Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "longhaul/hub/model_keeper.h"
#include "longhaul/hub/roster.h"
#include "longhaul/plan/measurements.h"
#include "longhaul/plan/round_cost.h"

namespace longhaul {

class LinkBook {
 public:
  // Without a planner nothing is probed.
  explicit LinkBook(bool is_planned) : is_planned_(is_planned) {}

  // A replica connects. `compute_s`: of one step, as it says; 0: it does not know.
  void begin(const std::string& name, double compute_s);
  void forget(const std::string& name) { links_.erase(name); }
  void take_report(const std::string& name, const v1::Report& report, TimePoint now);
  void take_arrival(const std::string& name, const Arrival& arrival, TimePoint now);
  [[nodiscard]] const Measured& measured(const std::string& name) const;

  // Is a planner there that lacks something of this link?
  [[nodiscard]] bool wants_first_probe(const std::string& name) const;
  void send_first_probe(Peer& peer);
  // Probes in each direction that was not measured for some time. `most`: bytes of any transfer.
  void probe_idle(Peer& peer, std::size_t most, TimePoint now);

  // Conditions of the members; empty while one is not known.
  [[nodiscard]] Conditions of_members(const Roster& roster) const;
  // Conditions of the replicas that are here and known well enough to start with.
  [[nodiscard]] Conditions of_starters(const Roster& roster) const;

  void round_closed(const RoundOutcome& round, const Plan& plan, const Conditions& replicas,
                    TimePoint now);
  [[nodiscard]] Seconds step_time() const { return cost_.step_time(); }
  [[nodiscard]] Seconds predicted_step_time(const Conditions& replicas, const Plan& plan) const;

 private:
  // One way of a link.
  struct Direction {
    TimePoint since;  // when its rate was last measured, or is to be
    bool is_doubted = false;
    // On this connection.
    std::uint64_t probes_begun = 0;
    std::uint64_t probes_ended = 0;  // begun by us or not
  };
  struct Link {
    Measured measured{.up = RateEstimator(kTrustedDuration),
                      .down = RateEstimator(kTrustedDuration)};
    Direction up;
    Direction down;
  };
  static void learn(Direction& direction, RateEstimator& rate, const TransferSample& sample,
                    TimePoint now);
  static void send_probe(Peer& peer, Direction& down, std::size_t bytes);

  bool is_planned_;
  std::map<std::string, Link> links_;  // by name
  Link unknown_;
  RoundCost cost_;
  RoundSize last_size_;  // of the last round that has closed
};

}  // namespace longhaul
