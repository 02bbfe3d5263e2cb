// The hub as a state machine for one thread: events and the time come in, frames and errands go
// out. It holds no clock, no thread and no socket. Work that grows with the model is an errand.
// HubCore conducts the parts that do the work: each of them has a header of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/errands.h"
#include "longhaul/base/log.h"
#include "longhaul/hub/courier.h"
#include "longhaul/hub/evaluations.h"
#include "longhaul/hub/first_model.h"
#include "longhaul/hub/front_desk.h"
#include "longhaul/hub/hub_log.h"
#include "longhaul/hub/link_book.h"
#include "longhaul/hub/roster.h"
#include "longhaul/hub/run_end.h"
#include "longhaul/hub/training.h"
#include "longhaul/hub/update_gate.h"
#include "longhaul/sync/step_rate.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// A round that closed, a start or a score, for those who watch.
// For those who watch.
struct RoundNews {
  RoundOutcome outcome;
  TimePoint time;
  bool is_start = false;                       // no round has closed: what begins, with which plan
  std::optional<v1::Evaluation> evaluation{};  // no round has closed: the shared model was scored
};

// The run that a hub serves, and its limits.
struct HubOptions {
  TrainingOptions training;
  v1::Task task;                  // what replicas are told before they join
  std::size_t start_with = 1;     // replicas that must be there before the first step
  Seconds silence{5.0};           // a replica that is not heard of for so long is gone
  Seconds patience{30.0};         // for who is away when the last round has closed
  std::optional<Bandwidth> rate;  // of bulk data to each replica, at most
  Admission admit;                // nothing: everyone
  std::vector<float> weights;     // in the mean, by slot; 1 where none is given
  std::uint64_t most_elements = std::uint64_t{1} << 37U;  // of a model: the first replica tells
  bool evaluates = false;       // the replica of the lowest slot scores the shared model
  TargetOptions target;         // of the scenario
  bool ends_at_target = false;  // else after all steps; needs `evaluates`
  std::size_t threads = 1;      // for means
  // Called on the hub's thread, from inside of its events.
  std::function<void(const RoundNews&)> watcher{};
};

// The state of a hub and its run, for people and for `status`.
struct HubStatus {
  std::uint64_t run = 0;
  bool is_started = false;
  bool is_finished = false;                 // every replica has merged all there is, and left
  std::optional<Error> failure;             // nothing goes on
  std::uint64_t elements = 0;               // of the model; 0: nobody has told yet
  std::size_t slots = 0;                    // replicas of the scenario
  std::size_t sessions = 0;                 // replicas that are here, or about to be
  std::uint64_t next_round = 0;             // its step
  std::uint64_t step = 0;                   // that the shared model stands at
  std::uint64_t steps = 0;                  // of the run; 0: until it is told
  v1::FinishCause cause = v1::CAUSE_STEPS;  // why it ends after those
  Seconds time{};                           // since this hub started or resumed the run
  std::uint64_t steps_here = 0;             // of them, those that were done since
  double steps_per_s = 0;                   // of late; this and the next, 0: not known
  Seconds left{};
  std::optional<v1::Evaluation> evaluation{};  // the last one
  std::optional<double> smoothed{};            // the target's metric, over the last three
  TargetOptions target;
  bool ends_at_target = false;
  std::string digest{};  // of the model, once the run is finished
  Plan plan;
  std::string reason;
  Seconds step_time{};            // measured under the plan in force; 0: not known yet
  Seconds predicted_step_time{};  // of that plan, by what is known now
  std::uint64_t refused = 0;      // joins
  std::uint64_t strangers = 0;    // connections that ended before anyone said who they are
  std::uint64_t rejected = 0;     // payloads and chunks
  std::uint64_t mismatches = 0;   // digests of the shared model
  std::map<std::string, ReplicaStatus> replicas;
};

class HubCore {
 public:
  // `workers` are for errands.
  HubCore(HubOptions options, Workers& workers, Errands& errands, Log log);
  ~HubCore();
  HubCore(const HubCore&) = delete;
  HubCore& operator=(const HubCore&) = delete;

  // Goes on where an earlier hub was killed, if its directory holds something.
  Status resume();

  void on_event(StreamEvent event, TimePoint now);
  // An errand is done.
  void on_errand(const Errands::End& end, TimePoint now);
  // At least a few times a second.
  void on_tick(TimePoint now);
  // Connections that the transport ended before there was a stream, and why the last one did.
  void on_strangers(std::uint64_t count, const std::string& why, TimePoint now);
  // The step that everyone is in becomes the last one. CAUSE_STOPPED: of this hub, not of the run.
  void finish(v1::FinishCause cause);
  // Tells every replica why. `is_over`: they need not come back.
  void end(const std::string& why, bool is_over);

  [[nodiscard]] HubStatus status() const;
  // Nothing before the start.
  [[nodiscard]] const Training* training() const { return training_.get(); }

 private:
  // hub_joins.cpp: from a stream to a member.
  [[nodiscard]] static std::size_t most_transfer_bytes(std::uint64_t elements);
  void on_first_frame(StreamId id, const Frame& frame);
  void on_join(StreamId id, const v1::Join& join);
  void on_lane(StreamId id, const v1::OpenLane& lane);
  [[nodiscard]] bool may_start() const { return !training_ && !status_.failure && !is_starting_; }
  void start_if_ready();
  void on_started(Result<std::unique_ptr<ModelKeeper>>&& keeper, std::size_t replicas);
  void begin(std::unique_ptr<ModelKeeper> keeper);
  void forget_who_never_started();

  // hub_core.cpp: frames of peers.
  void on_frame(StreamId id, Frame frame);
  void on_written(StreamId id);
  void on_control(Peer& peer, const Frame& frame);
  void on_report(Peer& peer, const v1::Report& report);
  void on_evaluation(Peer& peer, const v1::Evaluation& evaluation);
  Status on_chunk(Peer& peer, StreamId lane, v1::Chunk& chunk);
  Status on_arrival(Peer& peer, Arrival arrival);
  void on_first_model(StreamId control, const Status& fits);

  // hub_rounds.cpp: rounds close, the run ends.
  void close_rounds();
  void on_round_closed(const Result<RoundOutcome>& closed, const Conditions& replicas);

  [[nodiscard]] bool is_over() const;  // the last round has closed
  void announce_end();
  [[nodiscard]] bool is_finished() const;
  void find_final_digest();
  // The journal cannot be written.
  void fail(const Error& why);

  // Every event ends with it.
  void settle();
  // The peer's open rounds close without it; it may come back.
  void drop(Peer& peer, const std::string& why);
  void reject(Peer& peer, const std::string& why);
  void tell_of(const Peer& peer, const std::string& what);
  void tell_of_models();

  HubOptions options_;
  Workers& workers_;
  Errands& errands_;
  HubLog log_;
  TimePoint now_;     // of the event under way
  HubStatus status_;  // as far as no part of the hub knows it
  Roster roster_;
  LinkBook links_;
  FirstModel first_model_;
  FrontDesk desk_;
  RunEnd end_;
  UpdateGate gate_;
  Courier courier_;
  Evaluations evaluations_;
  std::unique_ptr<Training> training_;  // from the start on
  bool is_starting_ = false;            // the training is being made
  bool is_announced_ = false;           // the end
  bool is_finding_digest_ = false;
  StepRate rate_;
  std::optional<TimePoint> started_;  // as far as ticks tell
  std::uint64_t first_step_ = 0;      // that the model stood at then
};

}  // namespace longhaul
