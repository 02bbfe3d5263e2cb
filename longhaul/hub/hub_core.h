// What the hub does: lets replicas in, closes rounds, sends means, moves the plan, brings back who
// was away. A state machine for one thread: events and the time come in, frames and errands go out;
// it holds no clock, no thread and no socket. Work that grows with the model is an errand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/errands.h"
#include "longhaul/base/log.h"
#include "longhaul/base/repeat_filter.h"
#include "longhaul/hub/probe_guest.h"
#include "longhaul/hub/session.h"
#include "longhaul/hub/training.h"
#include "longhaul/plan/measurements.h"
#include "longhaul/plan/round_cost.h"
#include "longhaul/sync/step_rate.h"
#include "longhaul/sync/target.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// Is this replica invited? `certified` is the name on its certificate, empty without TLS.
using Admission = std::function<Status(const std::string& name, const std::string& token,
                                       const std::string& certified)>;

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
};

struct ReplicaStatus {
  std::size_t slot = 0;
  bool is_connected = false;
  bool is_enrolled = false;
  bool has_left = false;  // in order
  std::uint64_t step = 0;
  double loss = 0;
  double waiting_share = 0;
  std::uint32_t passes = 0;  // forward and backward, in its last step that had some
  Measured measured{.up = RateEstimator(kTrustedDuration), .down = RateEstimator(kTrustedDuration)};
  std::uint64_t bytes_up = 0;  // of payloads
  std::uint64_t bytes_down = 0;
  std::uint64_t returned = 0;  // updates that came too late or were rejected
  std::uint64_t rejected = 0;  // what it sent that was malformed
};

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

// For those who watch.
struct RoundNews {
  RoundOutcome outcome;
  TimePoint time;
  bool is_start = false;                       // no round has closed: what begins, with which plan
  std::optional<v1::Evaluation> evaluation{};  // no round has closed: the shared model was scored
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

  // Called from inside on_event and on_tick.
  void watch(std::function<void(const RoundNews&)> watcher) { watcher_ = std::move(watcher); }
  [[nodiscard]] HubStatus status() const;
  // Nothing before the start.
  [[nodiscard]] const Training* training() const { return training_.get(); }

 private:
  // Of the rate of one direction.
  struct Knowledge {
    TimePoint since;  // when it was last measured, or is to be
    bool is_doubted = false;
  };
  // Of a name, whether it is connected or not.
  struct Replica {
    ReplicaStatus status;
    float weight = 1.0F;
    Session* session = nullptr;
    bool was_evaluator = false;              // at some time: what it scored is taken
    std::optional<TimePoint> away_since;     // as far as ticks tell
    std::optional<TimePoint> doubled_since;  // another one of this name wanted in
    Knowledge up;
    Knowledge down;
  };
  struct Newcomer {
    StreamPtr stream;
    TimePoint since;
  };
  // An update while it is being checked.
  struct Submission {
    StreamId control = 0;  // of its session
    std::uint32_t restarts = 0;
    RoundId round;
    Attendance attendance;
    TimePoint at;
  };
  // The model before the first step, as a replica sent it.
  struct FirstModel {
    std::vector<float> parameters;
    std::uint64_t digest = 0;
  };
  // A state that replicas are given.
  struct Snapshot {
    ByteRope bytes;
    RoundId next_round;            // the first one that it has not merged
    std::uint64_t first_step = 0;  // that its model stands at
  };
  // How a stream begins.
  struct Introduction {
    std::uint32_t protocol = 0;
    std::string name;
    std::string token;
  };

  // hub_joins.cpp: from a stream to a member.
  void on_first_frame(StreamId id, const Frame& frame, TimePoint now);
  void on_join(StreamId id, const v1::Join& join, TimePoint now);
  void on_lane(StreamId id, const v1::OpenLane& lane, TimePoint now);
  void on_ask(StreamId id, const v1::Ask& ask);
  void on_ask_status(StreamId id, const v1::AskStatus& ask);
  void on_probe(StreamId id, const v1::OpenProbe& open, TimePoint now);
  void on_guest(StreamId id, const Frame& frame, TimePoint now);
  bool is_admitted(StreamId id, const Introduction& from);
  void refuse(StreamId id, const std::string& who, const Error& why);
  [[nodiscard]] Status check_time(const v1::Join& join) const;
  [[nodiscard]] static Error name_taken(Replica& replica, TimePoint now);
  [[nodiscard]] Status check_model(const v1::Join& join) const;
  [[nodiscard]] Result<std::size_t> slot_for(const v1::Join& join) const;
  void on_connected(Session& session);
  void ask_for_state();
  void tell_of_models();
  void start_if_ready();
  void on_started(Result<std::unique_ptr<ModelKeeper>>&& keeper, std::size_t replicas);
  [[nodiscard]] bool can_go_on(const Session& session) const;
  void take_in(Session& session);
  void bring_in(Session& session);
  void make_snapshot();
  void give(Session& session, const std::shared_ptr<const Snapshot>& snapshot);
  void tell_last_step(Session& session);
  void enroll_if_caught_up(Session& session);
  [[nodiscard]] v1::Welcome welcome_for(const Session& session, const v1::Join& join) const;

  // hub_links.cpp: what is known of the links.
  void measure(Replica& replica, const v1::Report& report);
  void learn(Knowledge& known, RateEstimator& rate, const TransferSample& sample) const;
  [[nodiscard]] bool is_old(const Knowledge& known) const;
  void probe_idle_links();
  static void send_probe(Session& session, std::size_t bytes);
  [[nodiscard]] Conditions conditions() const;  // of the members; empty while one is not known
  void measure(const RoundOutcome& round, const Conditions& replicas);
  [[nodiscard]] Seconds predicted_step_time() const;

  // hub_rounds.cpp: updates in, means out.
  void on_update(Session& session, Arrival arrival, TimePoint now);
  void on_checked(Submission submission, Result<CheckedPayload>&& update);
  void close_rounds();
  void on_round_closed(Result<ModelKeeper::Closed>&& closed, const Conditions& replicas);
  void send_means(Session& session);
  void send_mean(Session& session, const JournalRound& round);

  // hub_evaluations.cpp: who scores the shared model, and what comes of it.
  void name_evaluator();
  void on_evaluation(Session& session, const v1::Evaluation& evaluation);
  [[nodiscard]] bool is_possible(const v1::Evaluation& evaluation) const;
  void end_at_target();
  [[nodiscard]] bool is_over() const;  // the last round has closed
  void announce_end();

  // hub_core.cpp: frames, and what holds for all.
  void on_opened(StreamId id, StreamPtr stream);
  void on_frame(StreamId id, Frame frame, TimePoint now);
  void on_written(StreamId id);
  void on_closed(StreamId id, const Error& why);
  void on_control(Session& session, const Frame& frame);
  void on_report(Session& session, const v1::Report& report);
  void on_chunk(Session& session, StreamId lane, v1::Chunk& chunk, TimePoint now);
  void on_arrival(Session& session, Arrival arrival, TimePoint now);
  void on_state(Session& session, Arrival arrival);
  void on_first_model(StreamId control, FirstModel&& model);
  // What every event ends with.
  void settle();
  void drop(Session& session, const std::string& why);
  void forget_who_never_started();
  void reject(Session& session, const std::string& why);
  void keep_run();
  void fail(const Error& why);
  // One line for what happens again and again.
  void warn(const std::string& what);
  // Comings and goings; of one whose messages are rejected, not each of them.
  void tell_of(const Session& session, const std::string& what);
  [[nodiscard]] bool is_finished_at(TimePoint now) const;
  void find_final_digest();

  [[nodiscard]] Replica& replica_of(const Session& session) {
    return replicas_.at(session.identity().name);
  }
  [[nodiscard]] Session* session_of(StreamId stream);
  [[nodiscard]] CargoOptions limits() const;

  HubOptions options_;
  Workers& workers_;
  Errands& errands_;
  Log log_;
  RunRecord run_;
  std::map<StreamId, Newcomer> newcomers_;
  std::map<std::string, Replica> replicas_;
  std::map<StreamId, std::unique_ptr<Session>> sessions_;  // by control stream
  std::map<StreamId, Session*> lanes_;
  std::map<StreamId, ProbeGuest> guests_;
  std::vector<std::unique_ptr<Session>> dropped_;  // until the event is over
  std::uint64_t elements_ = 0;                     // of the model; 0: nobody has told yet
  std::optional<LayerTable> layers_;
  std::uint64_t initial_digest_ = 0;
  std::vector<float> initial_;          // the model before the first step, once it has come
  bool is_starting_ = false;            // the training is being made
  std::unique_ptr<Training> training_;  // from the start on
  bool is_making_snapshot_ = false;
  std::weak_ptr<const Snapshot> snapshot_;          // the last one, while it is on its way
  std::optional<v1::FinishCause> pending_finish_;   // until the round that is closing has closed
  std::optional<std::uint64_t> last_step_;          // of the run, once it is known
  v1::FinishCause finish_cause_ = v1::CAUSE_STEPS;  // why that is the last one
  bool is_asked_to_finish_ = false;
  bool is_announced_ = false;  // the end
  bool is_stopping_ = false;   // the run goes on with another hub
  bool is_finished_ = false;
  bool is_finding_digest_ = false;
  std::string final_digest_;  // before it is finished
  Session* evaluator_ = nullptr;
  bool is_evaluator_known_ = false;     // nobody has become a member, or ceased to be one, since
  std::vector<EvalPoint> evaluations_;  // the last three of this hub's life
  std::optional<v1::Evaluation> evaluation_;  // the last one; at the end, of all held-out data
  StepRate rate_;
  std::optional<TimePoint> started_;  // as far as ticks tell
  std::uint64_t first_step_ = 0;      // that the model stood at then
  std::string reason_;
  std::optional<Error> failure_;  // of the journal: nothing goes on
  TimePoint now_;                 // of the event under way
  RepeatFilter repeats_;
  RoundCost cost_;
  RoundSize last_size_;  // of the last round that has closed
  std::uint64_t refused_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t mismatches_ = 0;
  std::function<void(const RoundNews&)> watcher_;
};

}  // namespace longhaul
