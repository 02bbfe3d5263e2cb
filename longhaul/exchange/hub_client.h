// The exchange over a hub: a replica submits and collects, and a thread of its own talks to the
// hub, keeps what was not acknowledged, and comes back after every failure.
#pragma once

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

namespace longhaul {

// The connection was lost, or is there again after a loss.
struct LinkNews {
  std::optional<Error> lost;  // and why; nothing: there again
};

class HubClient final : public Exchange, private ClientNews {
 public:
  // `connector` and `clock` outlive the client. It begins to connect at once.
  HubClient(ClientSetup setup, Connector& connector, const Clock& clock);
  ~HubClient() override;
  HubClient(const HubClient&) = delete;
  HubClient& operator=(const HubClient&) = delete;

  // Waits until the hub has let the replica in.
  Result<Place> place(Deadline deadline);
  // Waits until it is a member, or its state is to be replaced: the plan to begin with, or nothing.
  Result<std::optional<Plan>> first_plan(Deadline deadline);

  // Decides what this replica does in the step; waits until that is known. `round` is the last
  // round of the next step that has rounds: while it is open, the hub waits for this replica. An
  // error is final.
  Result<Stance> stance(std::uint64_t step, RoundId round, Deadline deadline);
  // After kRestart.
  State take_snapshot();

  void submit(Update update) override;
  // kMismatch: the state was replaced meanwhile; stance() says so too.
  Result<Mean> collect(RoundId round, Deadline deadline) override;

  // Waits until the mean of a round is there to be collected. Errors as collect().
  Status await(RoundId round, Deadline deadline);

  // How far training is; also tells the hub of what was measured.
  void report(const v1::Report& report);
  // Is it this replica that scores the shared model?
  [[nodiscard]] bool is_evaluator() const;
  void tell(const v1::Evaluation& evaluation);
  // What others scored since the last call.
  [[nodiscard]] std::vector<v1::Evaluation> take_evaluations();
  // Leaves in order: open rounds close without this replica. Waits until the hub knows, for a
  // moment: it may be away.
  void leave();

  // Why the step that the hub has named is the last one.
  [[nodiscard]] v1::FinishCause finish_cause() const;

  // The one that the hub has let it into; 0: none yet.
  [[nodiscard]] std::uint64_t run() const;
  // Own updates whose means have not been collected: what a checkpoint needs.
  [[nodiscard]] std::map<RoundId, OwnUpdate> unmerged() const;
  // Which steps it was told to take part in: for a checkpoint too. None: not asked yet.
  [[nodiscard]] std::optional<Attendance> attendance() const;
  // Updates of a replica that does steps again, which are others than those that are in: they went
  // back to the residual, so a part of what is in counts twice.
  [[nodiscard]] std::size_t differing() const;
  [[nodiscard]] std::size_t reconnections() const;
  // Since the last call.
  [[nodiscard]] std::vector<LinkNews> take_link_news();

 private:
  struct Submit {
    RoundId round;
    OwnUpdate update;
    std::size_t life = 0;
  };
  struct Tell {
    v1::Report report;
    std::size_t life = 0;
  };
  struct Leave {};
  using Command = std::variant<StreamEvent, Submit, Tell, v1::Evaluation, Leave>;
  class Inbox;
  // A mean, and the digest of the own update that is in it.
  struct Came {
    Mean mean;
    std::optional<std::uint64_t> own;
  };

  void run(const std::stop_token& stop);
  void handle(Command command);
  [[nodiscard]] bool is_current(std::size_t life) const;
  [[nodiscard]] bool has_room() const;
  // Of an earlier life an update of this step, or of a later one, is in: it says what was done.
  [[nodiscard]] bool is_decided(std::uint64_t step) const REQUIRES(mutex_);
  [[nodiscard]] Stance stance_of(std::uint64_t step, RoundId round) const REQUIRES(mutex_);
  Status await_locked(RoundId round, Deadline deadline) REQUIRES(mutex_);
  // The training thread waits: whatever it waits for must come.
  template <typename IsReady>
  bool wait_for(Deadline deadline, IsReady is_ready) REQUIRES(mutex_);

  void on_welcome(const Place& place, std::optional<Contributed> contributed) override;
  void on_enrolled(RoundId from, const Plan& plan) override;
  void on_mean(Mean mean, std::optional<std::uint64_t> own) override;
  void on_restart(State state) override;
  void on_finish(std::uint64_t last_step, v1::FinishCause cause) override;
  void on_evaluate(bool is_on) override;
  void on_evaluation(const v1::Evaluation& told) override;
  void on_lost(const Error& why) override;
  void on_failed(const Error& why) override;
  void on_left() override;

  const Clock& clock_;
  const std::size_t most_mean_bytes_;  // that wait to be collected; then the hub is held back
  std::shared_ptr<Inbox> inbox_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Place> place_ GUARDED_BY(mutex_);
  std::optional<Plan> first_plan_ GUARDED_BY(mutex_);
  std::optional<RoundId> enrolled_from_ GUARDED_BY(mutex_);
  std::optional<Contributed> contributed_ GUARDED_BY(mutex_);  // the last one that is in
  std::optional<Attendance> attendance_ GUARDED_BY(mutex_);    // none: from the next step on
  std::optional<std::uint64_t> last_step_ GUARDED_BY(mutex_);
  v1::FinishCause finish_cause_ GUARDED_BY(mutex_) = v1::CAUSE_STEPS;
  bool is_evaluator_ GUARDED_BY(mutex_) = false;
  std::vector<v1::Evaluation> evaluations_ GUARDED_BY(mutex_);
  std::map<RoundId, Came> means_ GUARDED_BY(mutex_);
  std::size_t mean_bytes_ GUARDED_BY(mutex_) = 0;  // of those
  bool is_awaited_ GUARDED_BY(mutex_) = false;     // something is, by the training thread
  // Own updates whose means have not been collected. Only with both is it known what is returned: a
  // mean may come while the gradient of its step is still being computed.
  std::map<RoundId, OwnUpdate> own_ GUARDED_BY(mutex_);
  std::optional<State> snapshot_ GUARDED_BY(mutex_);
  // Every snapshot begins another life. What the training thread says before it has taken the
  // snapshot is of the life before, and comes to nothing.
  std::size_t life_ GUARDED_BY(mutex_) = 0;
  std::size_t trained_life_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  std::size_t reconnections_ GUARDED_BY(mutex_) = 0;
  std::size_t differing_ GUARDED_BY(mutex_) = 0;
  bool is_lost_ GUARDED_BY(mutex_) = false;  // and told of
  bool has_left_ GUARDED_BY(mutex_) = false;
  std::vector<LinkNews> link_news_ GUARDED_BY(mutex_);
  ClientCore core_;      // of the thread
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
