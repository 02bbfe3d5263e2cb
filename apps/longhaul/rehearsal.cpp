#include "apps/longhaul/rehearsal.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "apps/longhaul/installed.h"
#include "longhaul/base/clock.h"
#include "longhaul/lab/links.h"
#include "longhaul/lab/target.h"
#include "longhaul/lab/timing.h"
#include "longhaul/plan/planner.h"
#include "longhaul/plan/step_time.h"

namespace longhaul::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPollMilliseconds = 100;
constexpr Seconds kStartLimit{120.0};
constexpr Seconds kEndLimit{60.0};

Error failed(const std::string& what) { return Error{ErrorCode::kIo, what}; }

}  // namespace

Result<lab::RunResult> Rehearsal::run(const std::function<bool(const RehearsalView&)>& show) {
  if (Status started = start(); !started.ok()) return started.error();
  if (Status watched = watch(show); !watched.ok()) return watched.error();
  return result();
}

Status Rehearsal::start() {
  Result<v1::Task> task = task_of(setup_.task);
  if (!task.ok()) return task.error();
  task_ = std::move(task).value();
  Result<lab::Job> job = job_of(task_);
  if (!job.ok()) return job.error();
  job_ = std::move(job).value();
  view_.recipe = job_->recipe_text;
  std::error_code failure;
  std::filesystem::create_directories(setup_.directory, failure);
  std::vector<std::string> arguments{
      "hub",    setup_.task.scenario,         "--recipe", task_.recipe(),
      "--seed", std::to_string(task_.seed()), "--listen", "127.0.0.1:0",
      "--json"};
  for (const std::string& setting : setup_.task.settings) {
    arguments.emplace_back("--set");
    arguments.push_back(setting);
  }
  Result<Child> hub = Child::start({.program = (program_directory() / "longhaul").string(),
                                    .arguments = std::move(arguments),
                                    .errors = (setup_.directory / "hub.log").string()});
  if (!hub.ok()) return hub.error();
  hub_.emplace(std::move(hub).value());
  if (Status up = wait_for("the hub", [this] { return port_ > 0; }); !up.ok()) return up;
  const std::string torch = (program_directory() / "longhaul-torch").string();
  Result<Child> evaluator =
      Child::start({.program = torch,
                    .arguments = {"train", "--hub", "127.0.0.1:" + std::to_string(port_), "--name",
                                  "evaluator", "--evaluate"},
                    .errors = (setup_.directory / "evaluator.log").string(),
                    .niceness = 19,
                    .is_fed = true});
  if (!evaluator.ok()) return evaluator.error();
  evaluator_.emplace(std::move(evaluator).value());
  if (Status up = wait_for("the evaluator", [this] { return parameters_ > 0; }); !up.ok())
    return up;
  view_.predicted_step_time = predicted_step_time();
  return start_replicas();
}

Status Rehearsal::start_replicas() {
  Result<std::vector<SimulatedPeer>> peers = lab::free_peers_of(job_->scenario);
  if (!job_->recipe.recipe.is_free) peers = lab::peers_of(job_->scenario, job_->seed);
  if (!peers.ok()) return peers.error();
  for (std::size_t slot = 0; slot < peers->size(); ++slot) {
    Result<std::unique_ptr<Relay>> relay = Relay::start(
        {.target_port = static_cast<std::uint16_t>(port_), .link = (*peers)[slot].link});
    if (!relay.ok()) return relay.error();
    relays_.push_back(std::move(relay).value());
    const std::string name = "replica-" + std::to_string(slot);
    std::vector<std::string> arguments{"train",
                                       "--hub",
                                       "127.0.0.1:" + std::to_string(relays_.back()->port()),
                                       "--name",
                                       name,
                                       "--slot",
                                       std::to_string(slot),
                                       "--json"};
    if (slot == 0) {
      arguments.emplace_back("--stamps");
      arguments.push_back(setup_.directory.string());
    }
    Result<Child> replica =
        Child::start({.program = (program_directory() / "longhaul-torch").string(),
                      .arguments = std::move(arguments),
                      .errors = (setup_.directory / (name + ".log")).string()});
    if (!replica.ok()) return replica.error();
    replicas_.push_back(std::move(replica).value());
  }
  if (Status up = wait_for("the replicas", [this] { return starts_ > 0; }); !up.ok()) return up;
  for (const std::unique_ptr<Relay>& relay : relays_) relay->restart_trace();
  return Done{};
}

// From the scenario alone.
std::optional<Seconds> Rehearsal::predicted_step_time() const {
  Conditions links;
  for (const lab::ReplicaSettings& replica : job_->scenario.replicas)
    links.push_back({.compute = replica.step_time,
                     .latency = replica.link.latency,
                     .up = replica.link.up,
                     .down = replica.link.down});
  const Recipe& recipe = job_->recipe.recipe;
  if (recipe.is_free) return least_step_time(links);
  const RoundSizes sizes(recipe.codec, parameters_, links.size());
  return make_planner({.kind = recipe.planner,
                       .plan = recipe.plan,
                       .may_look_ahead = job_->scenario.train.optimizer != "adamw",
                       .seed = job_->seed,
                       .steps = job_->scenario.train.steps},
                      sizes)
      ->first(links)
      .step_time;
}

Status Rehearsal::wait_for(const std::string& what, const std::function<bool()>& is_so) {
  const Deadline limit = deadline_after(kStartLimit);
  while (!is_so()) {
    if (Status read = read_all(); !read.ok()) return read;
    if (SystemClock().now() > limit)
      return failed(what + " did not start; see " + setup_.directory.string() + "/*.log");
  }
  return Done{};
}

Status Rehearsal::read_all() {
  std::vector<std::pair<Child*, std::function<void(const Json&)>>> sources;
  sources.emplace_back(&*hub_, [this](const Json& event) { on_hub(event); });
  if (evaluator_)
    sources.emplace_back(&*evaluator_, [this](const Json& event) { on_evaluator(event); });
  for (std::size_t slot = 0; slot < replicas_.size(); ++slot)
    sources.emplace_back(&replicas_[slot],
                         [this, slot](const Json& event) { on_replica(slot, event); });
  std::vector<pollfd> waiting;
  for (const auto& [child, handler] : sources) {
    if (child->output() >= 0) waiting.push_back({.fd = child->output(), .events = POLLIN});
  }
  (void)::poll(waiting.data(), waiting.size(), kPollMilliseconds);
  for (const auto& [child, handler] : sources) {
    for (const std::string& line : child->read_lines()) {
      const Json event = Json::parse(line, nullptr, false);
      if (event.is_object() && event.contains("event")) handler(event);
    }
  }
  return check_children();
}

// A process that ends before the run does, or with a failure, ends it all.
Status Rehearsal::check_children() {
  const auto look = [&](Child& child, const std::string& name) -> Status {
    const std::optional<int> code = child.exit_code();
    if (!code || *code == 0 || (is_ending_ && *code == 130)) return Done{};
    return failed(name + " ended with " + std::to_string(*code) + "; see " +
                  (setup_.directory / (name + ".log")).string());
  };
  if (Status hub = look(*hub_, "hub"); !hub.ok()) return hub;
  if (evaluator_) {
    if (Status evaluator = look(*evaluator_, "evaluator"); !evaluator.ok()) return evaluator;
  }
  for (std::size_t slot = 0; slot < replicas_.size(); ++slot) {
    Status replica = look(replicas_[slot], "replica-" + std::to_string(slot));
    if (!replica.ok()) return replica;
  }
  return Done{};
}

void Rehearsal::on_hub(const Json& event) {
  const std::string name = event.at("event");
  if (name == "listening") {
    port_ = event.at("port");
  } else if (name == "status") {
    view_.status = event;
  } else if (name == "plan") {
    const Result<Merge> merge = parse_merge(event.at("merge").get<std::string>());
    run_.plans.push_back(
        {.step = event.at("step"),
         .time = Seconds(event.at("time_s").get<double>()),
         .plan = {.keep_ratio = event.at("keep_ratio"),
                  .delay_steps = event.at("delay_steps"),
                  .merge = merge.ok() ? *merge : Merge::kOptimizer},
         .predicted_step_time = Seconds(event.at("predicted_step_time_s").get<double>()),
         .reason = event.at("reason")});
  }
}

void Rehearsal::on_replica(std::size_t slot, const Json& event) {
  const std::string name = event.at("event");
  if (name == "started") {
    ++starts_;
  } else if (name == "step") {
    const std::size_t step = event.at("step");
    lab::StepPoint& point = steps_[step];
    point.step = step;
    point.time = std::max(point.time, Seconds(event.at("time_s").get<double>()));
    point.loss +=
        event.at("loss").get<double>() / static_cast<double>(job_->scenario.replicas.size());
    view_.time_s = std::max(view_.time_s, point.time.count());
  } else if (name == "stamp") {
    evaluator_->write_line(std::to_string(event.at("step").get<std::size_t>()) + ' ' +
                           std::to_string(event.at("time_s").get<double>()) + ' ' +
                           event.at("file").get<std::string>());
  } else if (name == "finished") {
    digests_[slot] = event.at("digest");
    late_steps_ += event.at("late_steps").get<std::size_t>();
    run_.non_finite_steps += event.at("non_finite_steps").get<std::size_t>();
  } else if (name == "final") {
    evaluator_->write_line("0 0 " + event.at("file").get<std::string>());
    evaluator_->close_input();
  }
}

void Rehearsal::on_evaluator(const Json& event) {
  if (event.at("event") == "ready") {
    parameters_ = event.at("parameters");
    return;
  }
  const std::size_t step = event.at("step");
  if (step == 0) {
    run_.final_loss = event.at("loss").get<double>();
    run_.final_accuracy = event.at("accuracy").get<double>();
    is_final_scored_ = true;
    return;
  }
  run_.evaluations.push_back({.step = step,
                              .time = Seconds(event.at("time_s").get<double>()),
                              .loss = event.at("loss"),
                              .accuracy = event.at("accuracy")});
  const std::vector<double> smooth = lab::smoothed_metric(job_->scenario.target, run_.evaluations);
  if (!smooth.empty()) view_.metric = smooth.back();
  end_if_done();
}

void Rehearsal::end_if_done() {
  if (is_ending_ || job_->scenario.train.stop != "target" ||
      !lab::target_reached(job_->scenario.target, run_.evaluations))
    return;
  is_ending_ = true;
  hub_->signal(SIGINT);
}

Status Rehearsal::watch(const std::function<bool(const RehearsalView&)>& show) {
  std::optional<Deadline> limit;
  while (!is_final_scored_) {
    if (Status read = read_all(); !read.ok()) return read;
    const bool goes_on = show(view_);
    if (!goes_on && !is_ending_) {
      is_ending_ = true;
      run_.status = "interrupted";
      hub_->signal(SIGINT);
    }
    const bool is_over = is_ending_ || digests_.size() == replicas_.size();
    if (is_over && !limit) limit = deadline_after(kEndLimit);
    if (limit && SystemClock().now() > *limit)
      return failed("the run did not end in time; see " + setup_.directory.string() + "/*.log");
  }
  return Done{};
}

Result<lab::RunResult> Rehearsal::result() {
  for (const auto& [slot, digest] : digests_) {
    if (digest != digests_.begin()->second)
      return Error{ErrorCode::kMismatch, "the shared model differs between replicas"};
  }
  if (digests_.size() != replicas_.size()) return failed("not every replica has finished");
  run_.recipe = job_->recipe_text;
  run_.seed = job_->seed;
  run_.lr = job_->recipe.lr;
  run_.replicas = replicas_.size();
  run_.parameters = parameters_;
  for (const auto& [step, point] : steps_) run_.losses.push_back(point);
  run_.steps = run_.losses.size();
  run_.virtual_time = run_.losses.empty() ? Seconds(0) : run_.losses.back().time;
  run_.digest = digests_.begin()->second;
  const Json& status = view_.status;
  for (const Json& replica : status.at("replicas")) {
    run_.bytes_up += replica.at("bytes_up").get<std::uint64_t>();
    run_.bytes_down += replica.at("bytes_down").get<std::uint64_t>();
  }
  run_.keep_ratio = status.at("keep_ratio");
  run_.delay_steps = status.at("delay_steps");
  run_.merge = status.at("merge");
  run_.codec = job_->recipe.recipe.codec.name();
  run_.predicted_step_time = view_.predicted_step_time;
  run_.late_steps = late_steps_;
  if (job_->recipe.recipe.planner == PlannerKind::kNone) run_.plans.clear();
  lab::fill_in_times(job_->scenario, run_);
  return std::move(run_);
}

}  // namespace longhaul::apps
