#include "longhaul/rehearsal/rehearsal.h"

#include <poll.h>

#include <algorithm>
#include <csignal>

#include "longhaul/lab/links.h"
#include "longhaul/lab/study.h"
#include "longhaul/plan/planner.h"
#include "longhaul/plan/step_time.h"
#include "longhaul/session/exit_code.h"
#include "longhaul/sync/target.h"

namespace longhaul {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr Seconds kStartLimit{120.0};
constexpr int kGaveUp = 1;          // exit code of a replica that has diverged
constexpr Seconds kEndLimit{60.0};  // without a word from anyone
constexpr std::size_t kMostFailedStarts = 20;

Error failed(const std::string& what) { return Error{ErrorCode::kIo, what}; }

std::size_t enrolled_in(const nlohmann::ordered_json& status) {
  std::size_t enrolled = 0;
  if (!status.contains("replicas")) return enrolled;
  for (const auto& replica : status.at("replicas"))
    enrolled += replica.at("enrolled").get<bool>() ? 1U : 0U;
  return enrolled;
}

// From the scenario alone.
std::optional<Seconds> predicted_step_time(const Job& job, std::size_t parameters,
                                           const LayerTable& layers) {
  const Conditions links = lab::conditions_of(job.scenario);
  const Recipe& recipe = job.recipe;
  if (recipe.is_free) return Paces(links).computing();
  const RoundSizes sizes(recipe.codec, parameters, links.size(), {}, recipe.way_down(), layers);
  const Result<EngineOptions> options = engine_options(job, layers);
  if (!options.ok()) return std::nullopt;  // the hub refuses it too
  return make_planner(planner_options(*options), sizes)->first(links).step_time;
}

std::string name_of_replica(std::size_t slot) { return "replica-" + std::to_string(slot); }

}  // namespace

Rehearsal::~Rehearsal() {
  for (Seat& seat : seats_) seat.process.reset();
  evaluator_.reset();
  hub_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(options_.directory / "stamps", ignored);
  std::filesystem::remove_all(options_.directory / "journal", ignored);
}

Result<lab::RunResult> Rehearsal::run() {
  LONGHAUL_TRY(start());
  LONGHAUL_TRY(watch());
  return result();
}

Status Rehearsal::start() {
  v1::Task task = LONGHAUL_TRY(task_of(options_.task, options_.catalogue));
  task_ = std::move(task);
  Job job = LONGHAUL_TRY(job_of(task_, options_.catalogue));
  job_ = std::move(job);
  view_.recipe = job_->recipe_text;
  if (options_.faults.is_wanted()) faults_.emplace(options_.faults, job_->scenario.replicas.size());
  std::error_code failure;
  std::filesystem::remove_all(options_.directory / "journal", failure);  // of a run that was killed
  std::filesystem::create_directories(options_.directory / "stamps", failure);
  if (options_.keeps_books) {
    std::filesystem::remove_all(options_.directory / "books", failure);
    std::filesystem::create_directories(options_.directory / "books", failure);
    rounds_.open(options_.directory / "books" / "rounds");
  }
  if (failure) return failed(options_.directory.string() + ": " + failure.message());
  LONGHAUL_TRY(start_hub());
  LONGHAUL_TRY(start_evaluator());
  view_.predicted_step_time = predicted_step_time(*job_, parameters_, layers_);
  return start_seats();
}

Status Rehearsal::start_hub() {
  std::vector<std::string> command{(options_.programs / "longhaul").string(),
                                   "hub",
                                   options_.task.scenario,
                                   "--recipe",
                                   task_.recipe(),
                                   "--seed",
                                   std::to_string(task_.seed()),
                                   "--listen",
                                   "127.0.0.1:" + std::to_string(port_),
                                   "--no-evaluation",  // the evaluator's stamps count
                                   "--json",
                                   "--rounds",
                                   "--status-every",
                                   "100ms",
                                   "--log-level",
                                   options_.log_level};
  for (const std::string& setting : options_.task.settings) {
    command.emplace_back("--set");
    command.push_back(setting);
  }
  if (faults_) {
    command.emplace_back("--dir");
    command.push_back((options_.directory / "journal").string());
  }
  Child hub = LONGHAUL_TRY(Child::start(command, (options_.directory / "hub.log").string()));
  is_listening_ = false;
  hub_.emplace(std::move(hub));
  return wait_for("the hub", [this] { return is_listening_; });
}

Status Rehearsal::start_evaluator() {
  Child evaluator = LONGHAUL_TRY(Child::start_helper(
      {(options_.programs / "longhaul-torch").string(), "train", "--hub",
       "127.0.0.1:" + std::to_string(port_), "--name", "evaluator", "--evaluate"},
      (options_.directory / "evaluator.log").string()));
  evaluator_.emplace(std::move(evaluator));
  return wait_for("the evaluator", [this] { return parameters_ > 0; });
}

Status Rehearsal::start_seats() {
  const Scenario scenario = LONGHAUL_TRY(scenario_of(options_.task, options_.catalogue));
  Result<std::vector<SimulatedPeer>> peers = lab::free_peers_of(scenario);
  if (!job_->recipe.is_free) peers = lab::peers_of(scenario, job_->seed);
  if (!peers.ok()) return peers.error();
  seats_ = std::vector<Seat>(peers->size());
  for (std::size_t slot = 0; slot < peers->size(); ++slot) {
    std::unique_ptr<Relay> relay =
        LONGHAUL_TRY(Relay::start(static_cast<std::uint16_t>(port_), (*peers)[slot].link));
    seats_[slot].relay = std::move(relay);
    LONGHAUL_TRY(start_replica(slot));
  }
  const auto is_anyone_training = [this] { return started_.has_value(); };
  LONGHAUL_TRY(wait_for("the replicas", is_anyone_training));
  for (const Seat& seat : seats_) seat.relay->restart_trace();
  return Done{};
}

Status Rehearsal::start_replica(std::size_t slot) {
  Seat& seat = seats_[slot];
  std::vector<std::string> command{(options_.programs / "longhaul-torch").string(),
                                   "train",
                                   "--hub",
                                   "127.0.0.1:" + std::to_string(seat.relay->port()),
                                   "--name",
                                   name_of_replica(slot),
                                   "--slot",
                                   std::to_string(slot),
                                   "--paced",
                                   "--json",
                                   "--log-level",
                                   options_.log_level};
  if (slot == 0) {
    command.emplace_back("--stamps");
    command.push_back((options_.directory / "stamps").string());
  }
  if (options_.keeps_books) {
    command.emplace_back("--book");
    command.push_back((options_.directory / "books" / name_of_replica(slot)).string());
  }
  Child replica = LONGHAUL_TRY(
      Child::start(command, (options_.directory / (name_of_replica(slot) + ".log")).string()));
  seat.process.emplace(std::move(replica));
  seat.has_started = false;
  return Done{};
}

Status Rehearsal::wait_for(const std::string& what, const std::function<bool()>& is_so) {
  const Deadline limit = deadline_after(kStartLimit);
  while (!is_so()) {
    LONGHAUL_TRY(read_all());
    if (!show_({})) return Error{ErrorCode::kClosed, "interrupted"};  // nothing to see yet
    if (Clock().now() > limit)
      return failed(what + " did not start; see " + options_.directory.string() + "/*.log");
  }
  return Done{};
}

Status Rehearsal::read_all() {
  std::vector<pollfd> waiting;
  const auto wait_for_output = [&](const std::optional<Child>& child) {
    if (child && child->output() >= 0) waiting.push_back({.fd = child->output(), .events = POLLIN});
  };
  wait_for_output(hub_);
  wait_for_output(evaluator_);
  for (const Seat& seat : seats_) wait_for_output(seat.process);
  (void)::poll(waiting.data(), waiting.size(), kPollMilliseconds);
  if (hub_) read(*hub_, [this](const auto& event) { on_hub(event); });
  if (evaluator_) read(*evaluator_, [this](const auto& event) { on_evaluator(event); });
  for (std::size_t slot = 0; slot < seats_.size(); ++slot) {
    if (seats_[slot].process)
      read(*seats_[slot].process, [this, slot](const auto& event) { on_replica(slot, event); });
  }
  return check_children();
}

// A process that ends before the run does, or with a failure, ends it all.
Status Rehearsal::look_at(Child& child, const std::string& name, bool may_end) const {
  const std::optional<int> code = child.exit_code();
  if (!code || child.output() >= 0) return Done{};  // it lives, or has not told all
  if (*code == 0 && may_end) return Done{};
  if ((*code == kExitInterrupted || *code == kExitStopped) && is_ending_) return Done{};
  return failed(name + " ended with " + std::to_string(*code) +
                (*code == 0 ? " before the run was over" : "") + "; see " +
                (options_.directory / (name + ".log")).string());
}

Status Rehearsal::check_children() {
  if (hub_) {
    LONGHAUL_TRY(look_at(*hub_, "hub", has_finished()));
  }
  if (evaluator_) {
    LONGHAUL_TRY(look_at(*evaluator_, "evaluator", is_final_scored_));
  }
  for (std::size_t slot = 0; slot < seats_.size(); ++slot) {
    LONGHAUL_TRY(check_replica(slot));
  }
  return Done{};
}

Status Rehearsal::check_replica(std::size_t slot) {
  Seat& seat = seats_[slot];
  if (!seat.process) return Done{};
  Status replica = look_at(*seat.process, name_of_replica(slot), !seat.digest.empty());
  if (replica.ok()) return replica;
  // Where training has diverged replicas end by themselves, and there is nothing to score.
  if (run_.status == lab::RunStatus::kDiverged && seat.process->exit_code() == kGaveUp) {
    seat.process.reset();
    is_final_scored_ = std::ranges::none_of(seats_, [](const Seat& one) { return !!one.process; });
    if (is_final_scored_) evaluator_->close_input();
    return Done{};
  }
  if (!faults_ || seat.has_started) return replica;
  // The hub or the link was away when it asked what there is to do: it tries again.
  if (!hub_) return Done{};
  if (++seat.failed_starts > kMostFailedStarts) return replica;
  return start_replica(slot);
}

Seconds Rehearsal::time() const {
  return started_ ? Seconds(Clock().now() - *started_) : Seconds(0);
}

// Everyone is to be there: the last step is for all.
void Rehearsal::end_if_done() {
  if (is_ending_) return;
  const bool is_done = job_->scenario.train.stop == StopAt::kTarget &&
                       target_reached(job_->scenario.target, run_.evaluations);
  if (!is_done && run_.status == lab::RunStatus::kDone) return;
  if (faults_ && run_.status == lab::RunStatus::kDiverged) faults_->stop();
  if (faults_ && run_.status != lab::RunStatus::kDiverged &&
      !(faults_->is_over(time()) && enrolled_in(view_.status) == seats_.size()))
    return;
  if (!hub_) return;  // it is to come back
  is_ending_ = true;
  hub_->signal(SIGINT);
}

Status Rehearsal::watch() {
  TimePoint heard = Clock().now();
  while (!is_final_scored_ || (hub_ && hub_->output() >= 0)) {
    LONGHAUL_TRY(read_all());
    if (std::exchange(was_heard_, false)) heard = Clock().now();
    if (faults_) {
      LONGHAUL_TRY(faults_->on_tick(
          time(), [this](const Fault& fault) { return begin(fault); },
          [this](const Fault& fault) { return end(fault); }));
      view_.faults = faults_->begun();
      view_.fault = faults_->last();
    }
    end_if_done();
    if (!show_(view_) && !is_ending_) {
      run_.status = lab::RunStatus::kInterrupted;
      if (faults_) faults_->stop();
    }
    if ((is_ending_ || has_finished()) && Clock().now() - heard > kEndLimit)
      return failed("the run did not end in time; see " + options_.directory.string() + "/*.log");
  }
  return Done{};
}

}  // namespace longhaul
