#include "longhaul/exchange/hub_client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostCommands = 1 << 16;
constexpr Seconds kTick{0.05};
constexpr Seconds kGoodbye{2.0};  // to hear that the hub has heard

constexpr std::size_t kFewestMeans = 4;
constexpr std::size_t kMostScores = 16;
constexpr std::size_t kMostRoundTrips = 4096;

std::size_t bytes_of(const Mean& mean) {
  std::size_t bytes = 0;
  for (const WeightedPayload& term : mean.terms) bytes += term.payload.size();
  return bytes;
}

Error too_late(const std::string& what) { return Error{ErrorCode::kDeadline, what}; }

}  // namespace

HubClient::HubClient(ClientOptions options, Connector& connector, const Clock& clock)
    : clock_(clock),
      most_mean_bytes_(options.most_mean_bytes),
      inbox_(std::make_shared<Mailbox<Command>>(kMostCommands)),
      attendance_(options.attendance),
      own_(options.own),
      first_step_(options.first_step),
      errands_([inbox = inbox_](Errands::End end) {
        (void)inbox->push(Command(std::move(end)));  // refused at the end only
      }),
      core_(std::move(options), connector, inbox_of(inbox_), errands_, *this),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

HubClient::~HubClient() {
  thread_.request_stop();
  inbox_->close();
}

void HubClient::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    core_.set_reading(has_room());
    core_.on_tick(clock_.now());
    {
      const MutexLock lock(mutex_);
      reconnections_ = core_.reconnections();
    }
    std::optional<Command> command = inbox_->pop_until(deadline_after(kTick));
    if (command) handle(std::move(*command));
  }
  while (std::optional<Command> command = inbox_->pop_until(Deadline::min()))
    handle(std::move(*command));
}

void HubClient::handle(Command command) {
  if (auto* event = std::get_if<StreamEvent>(&command)) {
    core_.on_event(std::move(*event), clock_.now());
  } else {
    core_.on_errand(std::get<Errands::End>(command), clock_.now());
  }
}

bool HubClient::post(Errands::End command) { return inbox_->try_push(Command(std::move(command))); }

bool HubClient::post_in_life(Errands::End command) {
  std::size_t life = 0;
  {
    const MutexLock lock(mutex_);
    life = trained_life_;
  }
  return post([this, life, command = std::move(command)] {
    {
      const MutexLock lock(mutex_);
      if (life != life_) return;
    }
    command();
  });
}

bool HubClient::has_room() const {
  const MutexLock lock(mutex_);
  // Transfers that are being checked are means, or will be.
  const std::size_t means = means_.size() + core_.unchecked();
  return is_awaited_ || means < kFewestMeans || mean_bytes_ < most_mean_bytes_;
}

template <typename IsReady>
bool HubClient::wait_for(Deadline deadline, IsReady is_ready) {
  is_awaited_ = !is_ready();
  const bool is_here = changed_.wait_until(mutex_, deadline, is_ready);
  is_awaited_ = false;
  return is_here;
}

Result<std::size_t> HubClient::slot(Deadline deadline) {
  const MutexLock lock(mutex_);
  if (!wait_for(deadline, [this]() REQUIRES(mutex_) { return slot_ || failure_; }))
    return too_late("the hub did not answer");
  if (failure_) return *failure_;
  return *slot_;
}

Result<std::optional<Plan>> HubClient::first_plan(Deadline deadline) {
  const MutexLock lock(mutex_);
  if (!wait_for(deadline,
                [this]() REQUIRES(mutex_) { return first_plan_ || snapshot_ || failure_; }))
    return too_late("the hub did not start");
  if (failure_) return *failure_;
  return first_plan_;
}

bool HubClient::is_decided(std::uint64_t step) const {
  return contributed_ && step <= contributed_->round.step;
}

Stance HubClient::stance_of(std::uint64_t step, RoundId round) const {
  if (snapshot_) return Stance::kRestart;
  if (last_step_ && step > *last_step_) return Stance::kFinish;
  if (is_decided(step))
    return contributed_->attendance.has(step) ? Stance::kTakePart : Stance::kSitOut;
  if (means_.contains(round)) return Stance::kSitOut;
  return round >= *enrolled_from_ ? Stance::kTakePart : Stance::kSitOut;
}

Result<Stance> HubClient::stance(std::uint64_t step, RoundId round, Deadline deadline) {
  const MutexLock lock(mutex_);
  const auto is_known = [&]() REQUIRES(mutex_) {
    return failure_ || snapshot_ || is_decided(step) || means_.contains(round) || enrolled_from_ ||
           (last_step_ && step > *last_step_);
  };
  if (!wait_for(deadline, is_known))
    return too_late("step " + std::to_string(step) + ": the hub is away");
  if (failure_) return *failure_;
  const Stance stance = stance_of(step, round);
  if (stance != Stance::kTakePart && stance != Stance::kSitOut) return stance;
  if (!attendance_) attendance_ = {.since = step};
  if (stance == Stance::kSitOut) attendance_->sit_out(step);
  return stance;
}

State HubClient::take_snapshot() {
  const MutexLock lock(mutex_);
  LONGHAUL_CHECK(snapshot_.has_value());
  trained_life_ = life_;
  attendance_.reset();
  own_.clear();
  const auto step = snapshot_->value<std::uint64_t>("step");
  first_step_ = step.ok() ? *step : 0;
  return *std::exchange(snapshot_, std::nullopt);
}

std::size_t HubClient::updates_in_flight() const {
  const MutexLock lock(mutex_);
  return own_.size();
}

void HubClient::submit(Update update) {
  {
    const MutexLock lock(mutex_);
    update.attendance = attendance_.value_or(Attendance{.since = update.round.step});
    own_[update.round] = update;
  }
  const bool is_taken = post_in_life([this, update = std::move(update)] { core_.submit(update); });
  LONGHAUL_CHECK(is_taken);
}

Status HubClient::await(RoundId round, Deadline deadline) {
  const MutexLock lock(mutex_);
  return await_locked(round, deadline);
}

Status HubClient::await_locked(RoundId round, Deadline deadline) {
  if (!wait_for(deadline,
                [&]() REQUIRES(mutex_) { return failure_ || snapshot_ || means_.contains(round); }))
    return too_late("the mean of round " + to_string(round) + " has not come");
  if (snapshot_) return Error{ErrorCode::kMismatch, "the state of this replica was replaced"};
  if (!means_.contains(round)) return *failure_;
  return Done{};
}

Result<Mean> HubClient::collect(RoundId round, Deadline deadline) {
  const MutexLock lock(mutex_);
  LONGHAUL_TRY(await_locked(round, deadline));
  const auto found = means_.find(round);
  Mean mean = std::move(found->second);
  mean_bytes_ -= bytes_of(mean);
  if (const auto own = own_.find(round); own != own_.end()) {
    const CheckedPayload& payload = own->second.payload;
    if (mean.own != payload.digest()) mean.returned = payload;
    if (mean.own && !mean.returned.empty()) ++differing_;
    own_.erase(own);
  }
  means_.erase(found);
  return mean;
}

void HubClient::report(const StepReport& report) {
  (void)post_in_life([this, report] { core_.report(to_message(report)); });
}

void HubClient::tell(const Score& score) {
  (void)post([this, score] { core_.tell(to_message(score)); });
}

bool HubClient::is_evaluator() const {
  const MutexLock lock(mutex_);
  return is_evaluator_;
}

std::vector<Score> HubClient::take_scores() {
  const MutexLock lock(mutex_);
  return std::exchange(scores_, {});
}

void HubClient::leave() {
  if (!post([this] { core_.leave(); })) return;
  const MutexLock lock(mutex_);
  (void)changed_.wait_until(mutex_, deadline_after(kGoodbye),
                            [this]() REQUIRES(mutex_) { return has_left_ || failure_; });
}

FinishCause HubClient::finish_cause() const {
  const MutexLock lock(mutex_);
  return finish_cause_;
}

std::map<RoundId, Update> HubClient::unmerged() const {
  const MutexLock lock(mutex_);
  return own_;
}

std::size_t HubClient::differing() const {
  const MutexLock lock(mutex_);
  return differing_;
}

std::size_t HubClient::reconnections() const {
  const MutexLock lock(mutex_);
  return reconnections_;
}

std::vector<Seconds> HubClient::round_trips() const {
  const MutexLock lock(mutex_);
  return {round_trips_.begin(), round_trips_.end()};
}

std::vector<LinkNews> HubClient::take_link_news() {
  const MutexLock lock(mutex_);
  return std::exchange(link_news_, {});
}

void HubClient::on_welcome(std::size_t slot, std::uint64_t run,
                           std::optional<Contribution> contributed) {
  {
    const MutexLock lock(mutex_);
    slot_ = slot;
    run_ = run;
    // A client that has connected anew hears only of what came after the means at hand; it may
    // still be doing again the steps before.
    if (contributed && (!contributed_ || contributed->round > contributed_->round))
      contributed_ = std::move(contributed);
    if (std::exchange(is_lost_, false)) link_news_.emplace_back();
  }
  changed_.notify_all();
}

void HubClient::on_enrolled(RoundId from, const Plan& plan) {
  {
    const MutexLock lock(mutex_);
    enrolled_from_ = from;
    if (!first_plan_) first_plan_ = plan;
  }
  changed_.notify_all();
}

void HubClient::on_mean(Mean mean) {
  {
    const MutexLock lock(mutex_);
    const RoundId round = mean.round;
    mean.arrived = clock_.now();
    mean_bytes_ += bytes_of(mean);
    means_[round] = std::move(mean);
  }
  changed_.notify_all();
}

void HubClient::on_restart(State state) {
  {
    const MutexLock lock(mutex_);
    snapshot_ = std::move(state);
    ++life_;
    enrolled_from_.reset();
    contributed_.reset();
    means_.clear();
    mean_bytes_ = 0;
  }
  changed_.notify_all();
}

void HubClient::on_finish(std::uint64_t last_step, v1::FinishCause cause) {
  {
    const MutexLock lock(mutex_);
    last_step_ = last_step;
    finish_cause_ = cause_from(cause);
  }
  changed_.notify_all();
}

void HubClient::on_evaluate(bool is_on) {
  const MutexLock lock(mutex_);
  is_evaluator_ = is_on;
}

// A training thread that is stuck does not take them: then the oldest go.
void HubClient::on_evaluation(const v1::Evaluation& told) {
  const MutexLock lock(mutex_);
  if (scores_.size() >= kMostScores) scores_.erase(scores_.begin());
  scores_.push_back(score_from(told));
}

void HubClient::on_round_trip(Seconds took) {
  const MutexLock lock(mutex_);
  if (round_trips_.size() >= kMostRoundTrips) round_trips_.pop_front();
  round_trips_.push_back(took);
}

// Told once, however often it is tried.
void HubClient::on_lost(const Error& why) {
  const MutexLock lock(mutex_);
  is_evaluator_ = false;  // until the hub says so again
  if (!std::exchange(is_lost_, true)) link_news_.emplace_back(why);
}

void HubClient::on_failed(const Error& why) {
  {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = why;
  }
  changed_.notify_all();
}

void HubClient::on_left() {
  {
    const MutexLock lock(mutex_);
    has_left_ = true;
  }
  changed_.notify_all();
}

}  // namespace longhaul
