// The replicas of a run: which name has which slot, and which of them are connected. A name keeps
// its slot for the whole run, and no two names share one. A name has at most one connection.
// Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/hub/journal.h"
#include "longhaul/hub/peer.h"
#include "longhaul/plan/measurements.h"

namespace longhaul {

// A replica of the run, connected or not.
struct ReplicaStatus {
  std::size_t slot = 0;
  float weight = 1.0F;  // in means
  bool is_connected = false;
  bool is_enrolled = false;
  bool has_left = false;  // in order
  std::uint64_t step = 0;
  double loss = 0;
  double waiting_share = 0;
  std::uint32_t passes = 0;  // forward and backward, in its last step that had some
  // Filled in for those who ask: the LinkBook measures.
  Measured measured{.up = RateEstimator(kTrustedDuration), .down = RateEstimator(kTrustedDuration)};
  std::uint64_t bytes_up = 0;  // of payloads
  std::uint64_t bytes_down = 0;
  std::uint64_t returned = 0;                // updates that came too late or were rejected
  std::uint64_t rejected = 0;                // what it sent that was malformed
  bool was_evaluator = false;                // at some time: its scores are accepted
  std::optional<TimePoint> away_since{};     // as far as ticks tell
  std::optional<TimePoint> doubled_since{};  // another one of this name wanted in
};

class Roster {
 public:
  // `run` is kept in `directory`, unless that is empty. `weights` are by slot; 1 where none is
  // given.
  Roster(RunRecord run, std::filesystem::path directory, std::size_t slots,
         std::vector<float> weights);

  [[nodiscard]] const RunRecord& run() const { return run_; }
  // An earlier hub's run goes on: its names have their slots.
  void resume(const RunRecord& run);
  // The run ends after this step. A hub that is killed later must know it.
  Status end_after(std::uint64_t last_step);
  Status keep() const;

  [[nodiscard]] const std::map<std::string, ReplicaStatus>& replicas() const { return replicas_; }
  [[nodiscard]] std::size_t slots() const { return slots_; }
  [[nodiscard]] Result<std::size_t> slot_for(const v1::Join& join) const;
  // Gives a new name its slot, and keeps it. Does nothing for a name that has this slot.
  Status enter(const std::string& name, std::size_t slot);
  // Takes the slots of those who are away, and returns their names. Only before the run starts.
  std::vector<std::string> forget_absent();
  void note_absent(TimePoint now);
  void take_report(const Peer& peer, const v1::Report& report);
  // Is a replica away that did not leave in order, and not longer than that?
  [[nodiscard]] bool awaits_absent(TimePoint now, Seconds patience) const;

  // Precondition: the name has entered, and has no connection.
  Peer& add(std::unique_ptr<Peer> peer);
  void add_lane(Peer& peer, StreamId id, StreamPtr stream);
  // The connection ends. The peer is there until release_removed().
  void remove(Peer& peer);
  void release_removed() { removed_.clear(); }
  void enroll(Peer& peer);
  void withdraw(Peer& peer);  // no longer a member of rounds
  // Counts how often someone became a member or ceased to be one.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

  [[nodiscard]] const std::map<StreamId, std::unique_ptr<Peer>>& peers() const { return peers_; }
  [[nodiscard]] Peer* peer_on(StreamId stream) const;  // its control stream, or a lane
  [[nodiscard]] Peer* peer_of(const std::string& name) const;
  [[nodiscard]] ReplicaStatus& of(const Peer& peer) { return replicas_.at(peer.name()); }

 private:
  RunRecord run_;
  std::filesystem::path directory_;
  std::size_t slots_;
  std::vector<float> weights_;
  std::map<std::string, ReplicaStatus> replicas_;
  std::map<StreamId, std::unique_ptr<Peer>> peers_;  // by control stream
  std::map<std::string, Peer*> here_;                // by name
  std::map<StreamId, Peer*> lanes_;
  std::vector<std::unique_ptr<Peer>> removed_;
  std::uint64_t changes_ = 0;
};

}  // namespace longhaul
