// One replica's run over a hub, from joining to the end: it trains, writes checkpoints and resumes.
// Ctrl-C and a hub that stops end it in order, so that it can go on later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/exchange/hub_client.h"
#include "longhaul/job/job.h"
#include "longhaul/session/book.h"
#include "longhaul/session/evaluation_duty.h"
#include "longhaul/session/session_observer.h"
#include "longhaul/sync/checkpoint.h"
#include "longhaul/sync/replica.h"

namespace longhaul {

// Where and how often checkpoints are written.
struct CheckpointOptions {
  std::filesystem::path file;  // empty: none are
  std::uint64_t steps = 0;     // between two of them; 0: see time
  Seconds time{30.0};
};

// How a session ended.
enum class Ending : std::uint8_t {
  kFinished,
  kStopped,      // by the hub, before the last step
  kInterrupted,  // by Ctrl-C
};

// The connection, the job and the checkpoints of a session.
struct SessionOptions {
  ClientOptions client;  // the session adds the place that a checkpoint gives it
  Job job;
  CheckpointOptions checkpoints;
  std::optional<State> checkpoint{};  // to go on from
  State marks{};                      // goes into every checkpoint: of which run it is
  std::size_t threads = 1;            // of codecs
  bool is_paced = false;              // no step is shorter than the scenario's step_time
  std::string book{};                 // a file, for tests; empty: none
};

// One replica's part in a run over a hub.
class TrainSession {
 public:
  // All but the options outlive it.
  TrainSession(SessionOptions options, Workload& workload, Connector& connector, const Clock& clock,
               SessionObserver& observer);

  // Trains until the last step, Ctrl-C or the stop of the hub. After the last two it writes a
  // checkpoint, to go on from later. Call it once.
  Result<Ending> run();
  // After run(), when all is told: a hub that everyone has left ends.
  void leave();

  // After run().
  [[nodiscard]] bool is_started() const { return is_started_; }
  // All means are merged: the model is that of the end, or of the stop. False after a stop, if the
  // hub was gone before its last means came.
  [[nodiscard]] bool is_merged() const { return is_merged_; }
  // After kStopped and kInterrupted: the step that it goes on from; 0: not started.
  [[nodiscard]] std::uint64_t step() const { return step_; }
  [[nodiscard]] std::size_t late_steps() const { return late_steps_; }
  // Precondition of both: it has started.
  [[nodiscard]] const Engine& engine() const { return replica_->engine(); }
  [[nodiscard]] const HubClient& client() const { return *client_; }

 private:
  Status prepare_checkpoints();
  Status join();
  [[nodiscard]] Result<ClientOptions> take_client_options();
  Status begin(std::size_t slot);
  Status train();
  Status finish();
  Result<Ending> interrupt();
  Result<Ending> stop();
  // Waits as long as it takes, with a look around now and then.
  template <typename Try>
  auto patiently(Try what) -> decltype(what(Deadline()));
  void look_around();
  bool goes_on();  // looks around
  [[nodiscard]] bool is_stopped() const;
  [[nodiscard]] bool is_cut_off() const { return is_lost_ && is_stopped(); }
  [[nodiscard]] State checkpoint() const;
  Status write_checkpoint();
  void save_if_due();

  SessionOptions options_;
  Workload& workload_;
  Connector& connector_;
  const Clock& clock_;
  SessionObserver& observer_;
  Workers workers_;
  std::unique_ptr<CheckpointWriter> writer_;  // nothing: no checkpoints
  std::uint64_t saved_step_ = 0;
  TimePoint saved_at_;
  std::size_t slot_ = 0;
  std::uint64_t step_ = 0;
  bool is_started_ = false;  // so there is something to keep
  bool is_lost_ = false;     // the connection to the hub
  bool is_merged_ = false;
  std::size_t late_steps_ = 0;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<HubClient> client_;
  std::unique_ptr<EvaluationDuty> duty_;
  std::unique_ptr<Book> book_;
  std::unique_ptr<Replica> replica_;
};

}  // namespace longhaul
