// Reads the events of a rehearsal's processes and builds its result.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "longhaul/lab/planned_layers.h"
#include "longhaul/lab/run_json.h"
#include "longhaul/lab/timing.h"
#include "longhaul/rehearsal/rehearsal.h"
#include "longhaul/sync/engine.h"
#include "longhaul/sync/target.h"

namespace longhaul {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN: a loss that is not finite is null.
double number(const Json& event, const char* key) {
  const Json& value = event.at(key);
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::optional<double> finite(const Json& event, const char* key) {
  const Json& value = event.at(key);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

}  // namespace

void Rehearsal::read(Child& child, const std::function<void(const Json&)>& handler) {
  for (const std::string& line : child.read_lines()) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object() || !event.contains("event")) continue;
    was_heard_ = was_heard_ || event.at("event") != "status";
    handler(event);
  }
}

void Rehearsal::on_hub(const Json& event) {
  const std::string name = event.at("event");
  if (name == "listening") {
    port_ = event.at("port");
    is_listening_ = true;
  } else if (name == "status") {
    view_.status = event;
    audit_.on_status(event);
    note_rates();
  } else if (name == "round") {
    audit_.on_round(event);
    note_round(event);
    if (rounds_.is_open()) rounds_ << event.dump() << '\n';
  } else if (name == "plan") {
    run_.plans.push_back(lab::plan_point_from_json(event).value());  // of a hub like this program
  }
}

void Rehearsal::on_replica(std::size_t slot, const Json& event) {
  Seat& seat = seats_[slot];
  const std::string name = event.at("event");
  if (name == "started") {
    if (!started_) started_ = Clock().now();
    seat.has_started = true;
    seat.failed_starts = 0;
    note_start(seat, event);
  } else if (name == "step") {
    on_step(seat, event);
  } else if (name == "stamp") {
    on_stamp(seat, event);
  } else if (name == "finished") {
    seat.digest = event.at("digest");
    run_.steps = event.at("steps");
    late_steps_ += event.at("late_steps").get<std::size_t>();
    run_.non_finite_steps += event.at("non_finite_steps").get<std::size_t>();
  } else if (name == "final") {
    evaluator_->write_line("0 0 " + event.at("file").get<std::string>());
    evaluator_->close_input();
  }
}

void Rehearsal::on_step(Seat& seat, const Json& event) {
  const double loss = number(event, "loss");
  seat.not_finite = std::isfinite(loss) ? 0 : seat.not_finite + 1;
  if (seat.not_finite >= Engine::kNonFiniteLimit && run_.status == lab::RunStatus::kDone)
    run_.status = lab::RunStatus::kDiverged;
  const std::size_t step = event.at("step");
  Seconds& end = step_ends_[step];
  end = std::max(end, seat.offset + Seconds(event.at("time_s").get<double>()));
  losses_[step].push_back(loss);
  view_.time_s = std::max(view_.time_s, end.count());
  note_step(seat, event);
}

// A replica that was brought back may stamp a step again.
void Rehearsal::on_stamp(const Seat& seat, const Json& event) {
  const std::size_t step = event.at("step");
  if (step <= last_stamp_) return;
  last_stamp_ = step;
  const Seconds time = seat.offset + Seconds(event.at("time_s").get<double>());
  evaluator_->write_line(std::to_string(step) + ' ' + std::to_string(time.count()) + ' ' +
                         event.at("file").get<std::string>());
}

void Rehearsal::on_evaluator(const Json& event) {
  if (event.at("event") == "ready") {
    parameters_ = event.at("parameters");
    for (const Json& layer : event.at("layers"))
      layers_.push_back({.name = layer.at("name"),
                         .offset = layer.at("offset"),
                         .count = layer.at("count"),
                         .shape = layer.at("shape")});
    return;
  }
  const std::size_t step = event.at("step");
  if (step == 0) {
    run_.final_loss = finite(event, "loss");
    if (!run_.final_loss) run_.status = lab::RunStatus::kDiverged;
    if (run_.status != lab::RunStatus::kDiverged) run_.final_accuracy = finite(event, "accuracy");
    if (run_.status == lab::RunStatus::kDiverged) run_.final_loss.reset();
    is_final_scored_ = true;
    return;
  }
  run_.evaluations.push_back({.step = step,
                              .time = Seconds(event.at("time_s").get<double>()),
                              .loss = number(event, "loss"),
                              .accuracy = number(event, "accuracy")});
  const std::vector<double> smooth = smoothed_metric(job_->scenario.target, run_.evaluations);
  if (!smooth.empty()) view_.metric = smooth.back();
}

bool Rehearsal::has_finished() const {
  return !seats_.empty() &&
         std::ranges::none_of(seats_, [](const Seat& seat) { return seat.digest.empty(); });
}

Status Rehearsal::check_end() const {
  if (run_.status == lab::RunStatus::kDiverged) return Done{};
  if (!has_finished()) return Error{ErrorCode::kIo, "not every replica has finished"};
  for (const Seat& seat : seats_) {
    if (seat.digest != seats_.front().digest)
      return Error{ErrorCode::kMismatch, "the shared model differs between replicas"};
  }
  if (faults_ && run_.status == lab::RunStatus::kDone && !faults_->is_over(time()))
    return Error{ErrorCode::kIo, "the run ended after " + std::to_string(faults_->begun()) +
                                     " faults; raise train.steps"};
  return audit_.verdict(run_.steps);
}

std::string Rehearsal::fault_report() const {
  return std::to_string(faults_ ? faults_->begun() : 0) + " faults, " +
         std::to_string(audit_.rounds()) + " rounds, each closed once, " +
         std::to_string(audit_.contributions()) + " updates in them; all models are equal";
}

Result<lab::RunResult> Rehearsal::result() {
  LONGHAUL_TRY(check_end());
  run_.recipe = job_->recipe_text;
  run_.seed = job_->seed;
  run_.lr = job_->lr;
  run_.replicas = seats_.size();
  run_.parameters = parameters_;
  run_.losses.reserve(losses_.size());
  for (const auto& [step, losses] : losses_)
    run_.losses.push_back({.step = step,
                           .time = step_ends_.at(step),
                           .loss = std::accumulate(losses.begin(), losses.end(), 0.0) /
                                   static_cast<double>(losses.size())});
  run_.steps = run_.losses.size();
  run_.virtual_time = run_.losses.empty() ? Seconds(0) : run_.losses.back().time;
  run_.digest = seats_.front().digest;
  const Json& status = view_.status;
  for (const Json& replica : status.at("replicas")) {
    run_.bytes_up += replica.at("bytes_up").get<std::uint64_t>();
    run_.bytes_down += replica.at("bytes_down").get<std::uint64_t>();
  }
  const Plan plan = LONGHAUL_TRY(plan_from_json(status));
  run_.plan = plan;
  run_.codec = job_->recipe.codec.name();
  run_.predicted_step_time = view_.predicted_step_time;
  run_.late_steps = late_steps_;
  if (job_->recipe.planner == PlannerKind::kNone) run_.plans.clear();
  fill_in_timeline();
  lab::fill_in_planned_layers(*job_, layers_, run_);
  lab::fill_in_times(job_->scenario, run_);
  return run_;
}

}  // namespace longhaul
