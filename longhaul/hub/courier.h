// Brings replicas what they lack: the means of rounds that have closed, or the hub's state where
// those are no longer at hand. A replica gets means in order and without a gap. It is a member of
// rounds once it has all of them. Belongs to the hub's loop.
#pragma once

#include <memory>

#include "longhaul/base/byte_rope.h"
#include "longhaul/base/errands.h"
#include "longhaul/hub/roster.h"
#include "longhaul/hub/run_end.h"
#include "longhaul/hub/training.h"

namespace longhaul {

class Courier {
 public:
  // `now` is the time of the event under way.
  Courier(Roster& roster, const RunEnd& end, Errands& errands, const TimePoint& now)
      : roster_(roster), end_(end), errands_(errands), now_(now) {}

  // The run starts, or the hub has failed and has no run: null.
  void serve(Training* training) { training_ = training; }

  // All lanes of the replica are here: it goes on where it stands if it can, else it is brought in.
  void take_in(Peer& peer);
  // The hub's state replaces the replica's.
  void bring_in(Peer& peer);
  void send_means(Peer& peer);
  // The replica has its state.
  void on_loaded(Peer& peer);

 private:
  [[nodiscard]] bool can_go_on(const Peer& peer) const;
  void make_snapshot();
  void give(Peer& peer, const std::shared_ptr<const ByteRope>& snapshot);
  void send_mean(Peer& peer, const JournalRound& round);
  void enroll_if_caught_up(Peer& peer);

  Roster& roster_;
  const RunEnd& end_;
  Errands& errands_;
  const TimePoint& now_;
  Training* training_ = nullptr;
  bool is_making_snapshot_ = false;
  std::weak_ptr<const ByteRope> snapshot_;  // the last state to give, while it is on its way
  v1::Restart restart_;                     // tells of it
};

}  // namespace longhaul
