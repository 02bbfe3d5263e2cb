#include "longhaul/lab/run.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/job/job.h"
#include "longhaul/lab/links.h"
#include "longhaul/lab/live_planner.h"
#include "longhaul/lab/planned_layers.h"
#include "longhaul/lab/results_json.h"
#include "longhaul/lab/seat.h"
#include "longhaul/lab/timekeeper.h"
#include "longhaul/lab/timing.h"
#include "longhaul/sync/target.h"

namespace longhaul::lab {
namespace {

constexpr const char* kSoFar = "so_far";  // in a checkpoint: the events of the run

std::string replica_name(std::size_t replica) { return "replica." + std::to_string(replica); }

class Run {
 public:
  Run(const Scenario& scenario, const RunOptions& request, Workload& workload, Workers& workers)
      : scenario_(scenario), request_(request), workload_(workload), workers_(workers) {}

  Result<RunResult> operator()() {
    LONGHAUL_TRY(set_up());
    for (std::size_t step = result_.losses.size(); step < scenario_.train.steps && !is_over_;
         ++step) {
      LONGHAUL_TRY(one_step(step));
    }
    return finish();
  }

 private:
  Status set_up() {
    job_ = LONGHAUL_TRY(make_job(scenario_, request_.recipe, request_.seed));
    Result<std::vector<SimulatedPeer>> peers = free_peers_of(scenario_);
    if (!job_.recipe.is_free) peers = peers_of(scenario_, request_.seed);
    if (!peers.ok()) return peers.error();
    network_ = std::make_unique<SimulatedNetwork>(*peers, workers_);
    network_->on_transfer([this](const Transfer& transfer) {
      if (planner_) planner_->note(transfer);
      times_->transferred(transfer);
    });
    std::vector<Seconds> latencies;
    for (const SimulatedPeer& peer : *peers) latencies.push_back(peer.link.latency);
    times_ = std::make_unique<Timekeeper>(result_, std::move(latencies));
    EngineOptions options = LONGHAUL_TRY(engine_options(job_, workload_.layers()));
    if (job_.recipe.planner != PlannerKind::kNone) start_planner(*peers, options);
    if (job_.recipe.is_two_way)
      network_->compress_means(
          make_mean_compressor(options, workload_.initial_parameters().size(), workers_));
    for (options.slot = 0; options.slot < scenario_.replicas.size(); ++options.slot) {
      seats_.push_back(std::make_unique<Seat>(options, scenario_.replicas[options.slot].step_time,
                                              scenario_.train.steps, workload_, *network_));
      LONGHAUL_TRY(seats_.back()->replica().start(Deadline::max()));
    }
    return request_.resume == nullptr ? Status(Done{}) : load(*request_.resume);
  }

  [[nodiscard]] State save() const {
    State state;
    for (std::size_t i = 0; i < seats_.size(); ++i)
      state.blobs[replica_name(i)] = to_bytes(seats_[i]->save());
    network_->save(state);
    times_->save(state);
    std::ostringstream events;
    write_run_events(events, result_);
    const std::string text = events.str();
    const auto bytes = std::as_bytes(std::span(text));
    state.blobs[kSoFar].assign(bytes.begin(), bytes.end());
    return state;
  }

  Status load(const State& state) {
    if (planner_)
      return Error{ErrorCode::kMismatch, "a run with a planner cannot go on from a checkpoint"};
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const ByteView bytes = LONGHAUL_TRY(state.blob(replica_name(i)));
      const State own = LONGHAUL_TRY(state_from_bytes(bytes));
      LONGHAUL_TRY(seats_[i]->replica().resume(own));
    }
    const ByteView so_far = LONGHAUL_TRY(state.blob(kSoFar));
    std::istringstream events(
        std::string(reinterpret_cast<const char*>(so_far.data()), so_far.size()));
    std::vector<RunResult> runs = LONGHAUL_TRY(read_run_events(events));
    if (runs.size() != 1 || runs.front().losses.size() != seats_[0]->engine().steps_done())
      return Error{ErrorCode::kMismatch, "a checkpoint without the steps that were done"};
    result_ = std::move(runs.front());
    LONGHAUL_TRY(times_->load(state));
    is_over_ = has_ended();
    return network_->load(state);
  }

  void start_planner(const std::vector<SimulatedPeer>& peers, EngineOptions& options) {
    const RoundSizes sizes(job_.recipe.codec, workload_.initial_parameters().size(), peers.size(),
                           {}, job_.recipe.way_down(), workload_.layers());
    planner_ = std::make_unique<LivePlanner>(planner_options(options), scenario_, peers, sizes);
    options.recipe.plan = planner_->plan();
    network_->plan_with([this](const ClosedRound& round) { return planner_->round_closed(round); });
  }

  Status one_step(std::size_t step) {
    LONGHAUL_TRY(for_all(step, [](Replica& replica) -> Status {
      const Result<Stance> begun = replica.begin_step(Deadline::max());
      return begun.ok() ? Status(Done{}) : begun.error();
    }));
    if (is_open_) note_step(step - 1);  // it has ended in this forward pass
    result_.wire.emplace_back();
    LONGHAUL_TRY(network_->settle());
    LONGHAUL_TRY(end_step(step));
    if (!is_open_) note_step(step);
    return Done{};
  }

  Status end_step(std::size_t step) {
    LONGHAUL_TRY(for_all(step, [](Replica& replica) -> Status {
      const Result<StepFacts> ended = replica.end_step(Deadline::max());
      return ended.ok() ? Status(Done{}) : ended.error();
    }));
    losses_.clear();
    for (const std::unique_ptr<Seat>& seat : seats_) losses_.push_back(seat->replica().loss());
    is_open_ = seats_[0]->replica().ends_in_forward();
    return Done{};
  }

  // Lets all replicas do a half of a step, several at once, and notes how each spent the time.
  Status for_all(std::size_t step, const std::function<Status(Replica&)>& half) {
    std::vector<Status> done(seats_.size(), Done{});
    std::vector<Seconds> before(seats_.size());
    workers_.run(seats_.size(), [&](std::size_t i) {
      before[i] = network_->now(i);
      done[i] = half(seats_[i]->replica());
    });
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (!done[i].ok()) return done[i];
      for (const auto& [begin, end] : seats_[i]->take_worked()) {
        times_->waited(step, i, before[i], begin);
        times_->computed(step, i, begin, end);
        before[i] = end;
      }
      times_->waited(step, i, before[i], network_->now(i));
    }
    return Done{};
  }

  // Notes the loss and the time of a step and an evaluation where one is due, and decides whether
  // to go on.
  void note_step(std::size_t step) {
    double loss = 0;
    for (const double one : losses_) loss += one / static_cast<double>(losses_.size());
    const std::size_t done = step + 1;
    result_.losses.push_back({.step = done, .time = latest(), .loss = loss});
    if (done % scenario_.eval.every == 0) evaluate(done);
    if (std::ranges::any_of(seats_, [](const auto& seat) { return seat->engine().has_diverged(); }))
      result_.status = RunStatus::kDiverged;
    const bool is_stopped = request_.progress && !request_.progress(done, scenario_.train.steps);
    is_over_ = is_stopped || has_ended();
    const bool is_due = request_.save_every > 0 && done % request_.save_every == 0;
    const bool can_save = !planner_ && !is_open_;  // not what is on its way in a forward pass
    if (request_.save && can_save && (is_due || is_stopped)) request_.save(save());
  }

  [[nodiscard]] bool has_ended() const {
    if (result_.status == RunStatus::kDiverged) return true;
    return scenario_.train.stop == StopAt::kTarget &&
           target_reached(scenario_.target, result_.evaluations).has_value();
  }

  // Outside the virtual clock: evaluating takes no time.
  void evaluate(std::size_t done) {
    const Evaluation evaluation =
        workload_.evaluate(seats_[0]->engine().shared(), scenario_.eval.samples);
    result_.evaluations.push_back(
        {.step = done, .time = latest(), .loss = evaluation.loss, .accuracy = evaluation.accuracy});
  }

  [[nodiscard]] Seconds latest() const {
    Seconds time{};
    for (const std::unique_ptr<Seat>& seat : seats_) time = std::max(time, seat->ended());
    return time;
  }

  Result<RunResult> finish() {
    if (is_open_) {
      const std::size_t last = result_.losses.size();
      LONGHAUL_TRY(end_step(last));
      note_step(last);
    }
    result_.virtual_time = latest();
    for (const std::unique_ptr<Seat>& seat : seats_) {
      (void)LONGHAUL_TRY(seat->replica().finish(Deadline::max()));
      result_.non_finite_steps += seat->engine().non_finite_steps();
    }
    const std::span shared = seats_[0]->engine().shared();
    for (const std::unique_ptr<Seat>& seat : seats_) {
      if (digest_of(seat->engine().shared()) != digest_of(shared)) {
        return Error{ErrorCode::kMismatch, "the shared model differs between replicas"};
      }
    }
    describe(shared);
    if (result_.status != RunStatus::kDiverged && check_finite(shared).ok()) {
      const Evaluation last = workload_.evaluate(shared, static_cast<std::size_t>(-1));
      result_.final_loss = last.loss;
      result_.final_accuracy = last.accuracy;
    } else {
      result_.status = RunStatus::kDiverged;
    }
    return std::move(result_);
  }

  void describe(std::span<const float> shared) {
    result_.recipe = job_.recipe_text;
    result_.seed = request_.seed;
    result_.lr = job_.lr;
    result_.replicas = seats_.size();
    result_.parameters = shared.size();
    result_.steps = result_.losses.size();
    result_.bytes_up = network_->bytes_up();
    result_.bytes_down = network_->bytes_down();
    result_.digest = digest_text(shared);
    result_.plan = seats_[0]->engine().plan();
    result_.codec = job_.recipe.codec.name();
    if (planner_) result_.plans = planner_->decisions();
    fill_in_planned_layers(job_, workload_.layers(), result_);
    fill_in_times(scenario_, result_);
  }

  const Scenario& scenario_;
  const RunOptions& request_;
  Workload& workload_;
  Workers& workers_;
  Job job_;
  std::unique_ptr<SimulatedNetwork> network_;
  std::unique_ptr<LivePlanner> planner_;  // nothing: the plan is fixed
  std::vector<std::unique_ptr<Seat>> seats_;
  RunResult result_;
  std::unique_ptr<Timekeeper> times_;  // writes into the result
  std::vector<double> losses_;         // of the last step, by replica
  bool is_open_ = false;               // that step ends in the forward pass of the next one
  bool is_over_ = false;
};

}  // namespace

Result<RunResult> run(const Scenario& scenario, const RunOptions& request, Workload& workload,
                      Workers& workers) {
  return Run(scenario, request, workload, workers)();
}

}  // namespace longhaul::lab
