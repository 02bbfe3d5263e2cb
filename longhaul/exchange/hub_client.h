// Exchange and membership over a hub. A thread of its own talks to the hub, keeps updates until
// they are acknowledged, and comes back after every failure.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "longhaul/base/mailbox.h"
#include "longhaul/base/mutex.h"
#include "longhaul/exchange/client_core.h"
#include "longhaul/exchange/membership.h"
#include "longhaul/exchange/score.h"

namespace longhaul {

// Why the connection was lost. Nothing: it is there again after a loss.
using LinkNews = std::optional<Error>;

class HubClient final : public Exchange, public Membership, private ClientNews {
 public:
  // `connector` and `clock` outlive the client. It begins to connect at once.
  HubClient(ClientOptions options, Connector& connector, const Clock& clock);
  ~HubClient() override;
  HubClient(const HubClient&) = delete;
  HubClient& operator=(const HubClient&) = delete;

  // Waits until the hub has let the replica in, and returns its slot.
  Result<std::size_t> slot(Deadline deadline);
  Result<std::optional<Plan>> first_plan(Deadline deadline) override;

  // While `round` is open, the hub waits for this replica.
  Result<Stance> stance(std::uint64_t step, RoundId round, Deadline deadline) override;
  State take_snapshot() override;
  [[nodiscard]] std::size_t updates_in_flight() const override;

  void submit(Update update) override;
  // kMismatch: the state was replaced meanwhile; stance() says so too.
  Result<Mean> collect(RoundId round, Deadline deadline) override;

  // Errors as collect().
  Status await(RoundId round, Deadline deadline) override;

  // Also tells the hub of what was measured.
  void report(const StepReport& report) override;
  // stand_at() reads it.
  void save(State& checkpoint) const override;
  // Is it this replica that scores the shared model?
  [[nodiscard]] bool is_evaluator() const;
  void tell(const Score& score);
  // Scores of others since the last call.
  [[nodiscard]] std::vector<Score> take_scores();
  // Leaves in order: open rounds close without this replica. Waits until the hub knows, for a
  // moment: it may be away.
  void leave();

  // Why the step that the hub has named is the last one.
  [[nodiscard]] FinishCause finish_cause() const;

  // Own updates whose means have not been collected.
  [[nodiscard]] std::map<RoundId, Update> unmerged() const;
  // Updates of a replica that does steps again, which are others than those that are in: they went
  // back to the residual, so a part of what is in counts twice.
  [[nodiscard]] std::size_t differing() const;
  [[nodiscard]] std::size_t reconnections() const;
  // Round trips of the last pings: how long the hub took to answer, and this client's thread to see
  // it.
  [[nodiscard]] std::vector<Seconds> round_trips() const;
  // Since the last call.
  [[nodiscard]] std::vector<LinkNews> take_link_news();

 private:
  // The end of an errand, or something else to do on the client's thread.
  using Command = std::variant<StreamEvent, Errands::End>;

  void run(const std::stop_token& stop);
  void handle(Command command);
  // Does it on the client's thread, unless the state was replaced since.
  [[nodiscard]] bool post(Errands::End command);
  [[nodiscard]] bool post_in_life(Errands::End command);
  [[nodiscard]] bool has_room() const;
  // An update of this step, or of a later one, is in since an earlier life: it says what was done.
  [[nodiscard]] bool is_decided(std::uint64_t step) const REQUIRES(mutex_);
  [[nodiscard]] Stance stance_of(std::uint64_t step, RoundId round) const REQUIRES(mutex_);
  Status await_locked(RoundId round, Deadline deadline) REQUIRES(mutex_);
  // The training thread waits: whatever it waits for must come.
  template <typename IsReady>
  bool wait_for(Deadline deadline, IsReady is_ready) REQUIRES(mutex_);

  void on_welcome(std::size_t slot, std::uint64_t run,
                  std::optional<Contribution> contributed) override;
  void on_enrolled(RoundId from, const Plan& plan) override;
  void on_mean(Mean mean) override;
  void on_restart(State state) override;
  void on_finish(std::uint64_t last_step, v1::FinishCause cause) override;
  void on_evaluate(bool is_on) override;
  void on_evaluation(const v1::Evaluation& told) override;
  void on_round_trip(Seconds took) override;
  void on_lost(const Error& why) override;
  void on_failed(const Error& why) override;
  void on_left() override;

  const Clock& clock_;
  const std::size_t most_mean_bytes_;        // that wait to be collected; then the hub is held back
  std::shared_ptr<Mailbox<Command>> inbox_;  // shared: streams outlive it for a moment
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<std::size_t> slot_ GUARDED_BY(mutex_);
  std::uint64_t run_ GUARDED_BY(mutex_) = 0;  // 0: not known yet
  std::optional<Plan> first_plan_ GUARDED_BY(mutex_);
  std::optional<RoundId> enrolled_from_ GUARDED_BY(mutex_);
  std::optional<Contribution> contributed_ GUARDED_BY(mutex_);  // the last one that is in
  std::optional<Attendance> attendance_ GUARDED_BY(mutex_);     // none: from the next step on
  std::optional<std::uint64_t> last_step_ GUARDED_BY(mutex_);
  FinishCause finish_cause_ GUARDED_BY(mutex_) = FinishCause::kSteps;
  bool is_evaluator_ GUARDED_BY(mutex_) = false;
  std::vector<Score> scores_ GUARDED_BY(mutex_);
  std::map<RoundId, Mean> means_ GUARDED_BY(mutex_);
  std::size_t mean_bytes_ GUARDED_BY(mutex_) = 0;  // of those
  bool is_awaited_ GUARDED_BY(mutex_) = false;     // something is, by the training thread
  // Own updates whose means have not been collected. Only with both is it known what is returned: a
  // mean may come while the gradient of its step is still being computed.
  std::map<RoundId, Update> own_ GUARDED_BY(mutex_);
  std::uint64_t first_step_ GUARDED_BY(mutex_);  // its state was given before it
  std::optional<State> snapshot_ GUARDED_BY(mutex_);
  // Every snapshot begins another life. Anything that the training thread says before it has taken
  // the snapshot is of the life before, and comes to nothing.
  std::size_t life_ GUARDED_BY(mutex_) = 0;
  std::size_t trained_life_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  std::size_t reconnections_ GUARDED_BY(mutex_) = 0;
  std::deque<Seconds> round_trips_ GUARDED_BY(mutex_);
  std::size_t differing_ GUARDED_BY(mutex_) = 0;
  bool is_lost_ GUARDED_BY(mutex_) = false;  // and told of
  bool has_left_ GUARDED_BY(mutex_) = false;
  std::vector<LinkNews> link_news_ GUARDED_BY(mutex_);
  ErrandThread errands_;
  ClientCore core_;      // of the thread
  std::jthread thread_;  // last: ends before what it uses
};

// Tells the client of a replica that resumes where it stands. `sent`: updates that the replica has
// submitted since the checkpoint, if its local step is the caller's. Null: its local step is ours,
// so it does steps again. If the hub has an update that is in neither, the residual is no longer
// known, and the replica is given the hub's state.
Status stand_at(const State& checkpoint, ClientOptions& client, const SentUpdates* sent = nullptr);

}  // namespace longhaul
