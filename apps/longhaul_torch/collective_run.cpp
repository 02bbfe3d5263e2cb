#include "apps/longhaul_torch/collective_run.h"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/model_file.h"
#include "apps/longhaul_torch/rank_checkpoints.h"
#include "apps/longhaul_torch/rank_job.h"
#include "apps/longhaul_torch/train_identity.h"
#include "apps/longhaul_torch/train_news.h"
#include "apps/longhaul_torch/train_run.h"
#include "longhaul/base/memory.h"
#include "longhaul/codec/digest.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/replica.h"
#include "longhaul/sync/scorer.h"
#include "trainer/collective.h"
#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kOneWait{0.2};  // of one wait, between looks at Ctrl-C

class CollectiveRun {
 public:
  CollectiveRun(const TrainCommandOptions& arguments, RankJob rank, trainer::C10dGroup& group,
                const CheckpointOptions& checkpoints)
      : arguments_(arguments),
        rank_(std::move(rank)),
        group_(group),
        checkpoints_(checkpoints),
        news_(arguments.json, log_level(arguments.log), job().scenario.train.steps, clock_) {}

  // True: to the end; false: interrupted.
  Result<bool> run() {
    Status done = set_up();
    if (done.ok()) done = train();
    if (done.ok() && !is_interrupted()) {
      done = finish();
      if (done.ok()) return true;
    }
    if (!is_interrupted()) return done.error();
    news_.interrupted(rest());
    return false;
  }

  // Comes after the reason of a failure.
  [[nodiscard]] std::string hint() const {
    if (!checkpoints_.are_written())
      return "; its own log says more. Nothing was kept: --checkpoint DIR keeps the run";
    return "; its own log says more. Start all ranks again with --resume to go on from step " +
           std::to_string(collective_ ? collective_->kept_by_all() : 0) + " or later";
  }

 private:
  [[nodiscard]] const Job& job() const { return rank_.job; }
  [[nodiscard]] trainer::AllGather gather() const {
    return [&group = group_](ByteView own) { return group.gather(own); };
  }
  // Nothing, where updates are gathered.
  [[nodiscard]] trainer::AllReduce reduce() const {
    if (!arguments_.all_reduce) return {};
    return [&group = group_](std::span<float> values) { return group.sum(values); };
  }

  Status set_up() {
    std::optional<State> checkpoint =
        LONGHAUL_TRY(checkpoints_.agree(gather(), rank_.place.size, arguments_.resume));
    const std::size_t threads = threads_for(arguments_, rank_.rendezvous, checkpoint);
    workers_ = std::make_unique<Workers>(threads);
    trainer::WorkloadOptions options = trainer::workload_options(job().scenario, job().seed);
    options.gradient_threads = threads;
    std::unique_ptr<Workload> workload = LONGHAUL_TRY(trainer::make_workload(options));
    workload_ = std::move(workload);
    RunIdentity identity =
        identity_of(rank_.task, "rank-" + std::to_string(rank_.place.rank), workload_->layers());
    identity.emplace_back("means", arguments_.all_reduce ? "all-reduce" : "gathered");
    checkpoints_.set_identity(std::move(identity));
    if (checkpoint) {
      LONGHAUL_TRY(checkpoints_.check(*checkpoint));
    }
    Status alike = compare_ranks();
    return alike.ok() ? start(checkpoint) : alike;
  }

  // All ranks are of the same job, and start at the same model.
  Status compare_ranks() {
    ByteWriter own;
    const std::string task = rank_.task.SerializeAsString();
    own.u64(digest_of(std::as_bytes(std::span(task))));
    own.u64(digest_of(workload_->initial_parameters()));
    own.u64(arguments_.all_reduce ? 1 : 0);
    return compare(std::move(own).release(), "scenario, recipe, seed, setting or model");
  }

  // Waits for all ranks. An error names a rank whose bytes are others than those of rank 0.
  Status compare(const ByteBuffer& own, const std::string& what) {
    const std::vector<ByteBuffer> all = LONGHAUL_TRY(group_.gather(own));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] != all.front())
        return Error{ErrorCode::kMismatch,
                     "rank " + std::to_string(rank) + " has another " + what + " than rank 0"};
    return Done{};
  }

  Status start(const std::optional<State>& checkpoint) {
    EngineOptions engine = LONGHAUL_TRY(engine_options(job(), workload_->layers()));
    engine.slot = rank_.place.rank;
    engine.averages_in_place = arguments_.all_reduce;
    // Else the ranks would end with models of their own.
    if (arguments_.all_reduce && has_local_steps(engine.recipe.plan.merge))
      engine.final_average = job().scenario.train.steps - 1;
    trainer::CollectiveOptions options{.engine = engine,
                                       .elements = workload_->initial_parameters().size(),
                                       .steps = job().scenario.train.steps,
                                       .computing = job().scenario.train.step_time};
    for (const ReplicaOptions& replica : job().scenario.replicas)
      options.weights.push_back(static_cast<float>(replica.weight));
    std::unique_ptr<trainer::Collective> made =
        LONGHAUL_TRY(trainer::Collective::start(options, gather(), clock_, reduce()));
    collective_ = std::move(made);
    learner_ = workload_->make_learner(rank_.place.rank);
    const ReplicaOptions& own = job().scenario.replicas[rank_.place.rank];
    replica_ = std::make_unique<Replica>(
        Replica::Options{.engine = engine,
                         .workers = *workers_,
                         .clock = clock_,
                         .step_time = arguments_.is_paced ? own.step_time : Seconds{},
                         .goes_on = [this] { return goes_on(); }},
        *learner_, *collective_, *collective_);
    LONGHAUL_TRY(checkpoint ? collective_->load(*checkpoint) : Done{});
    Status started = checkpoint ? replica_->resume(*checkpoint) : replica_->start(Deadline::max());
    if (!started.ok()) return started;
    if (rank_.place.rank == 0)
      scorer_ = std::make_unique<Scorer>(*workload_, job().scenario.eval.samples);
    checkpoints_.start_at(replica_->engine().steps_done());
    collective_->keep(replica_->engine().steps_done());
    news_.note(rank_.place.launcher + " started " + std::to_string(rank_.place.size) +
               " ranks; they meet at " + rank_.rendezvous);
    news_.started(rank_.place.rank, replica_->engine().steps_done(), workers_->count(),
                  checkpoint.has_value());
    return Done{};
  }

  // Waits as long as it takes, with a look around now and then.
  template <typename Try>
  auto patiently(Try what) -> decltype(what(Deadline())) {
    for (;;) {
      auto result = what(time_after(clock_.now(), kOneWait));
      const bool is_late = !result.ok() && result.error().code == ErrorCode::kDeadline;
      if (!goes_on() || !is_late) return result;
    }
  }

  bool goes_on() {
    look_around();
    return !is_interrupted();
  }

  void look_around() {
    if (scorer_)
      if (const auto score = scorer_->take()) news_.evaluation(*score);
    if (const auto outcome = checkpoints_.take_outcome()) {
      news_.checkpoint(*outcome, checkpoints_.newest());
      if (outcome->ok()) collective_->keep(**outcome);
    }
    for (const auto& [round, decision] : collective_->take_decisions())
      if (rank_.place.rank == 0)
        news_.note("plan of step " + std::to_string(round.step) + ": " + plan_text(decision.plan) +
                   "; " + decision.reason);
  }

  Status train() {
    while (!is_interrupted()) {
      const Result<StepFacts> facts =
          patiently([&](Deadline deadline) { return replica_->step(deadline); });
      if (!facts.ok()) return is_interrupted() ? Status(Done{}) : facts.error();
      if (facts->stance == Stance::kFinish) return Done{};
      if (facts->was_late) ++late_steps_;
      const std::uint64_t done = facts->step + 1;
      news_.step(*facts);
      if (done % job().scenario.eval.every == 0) LONGHAUL_TRY(offer_score());
      if (replica_->engine().has_diverged())
        return Error{ErrorCode::kNotFinite,
                     "diverged: " + std::to_string(Engine::kNonFiniteLimit) +
                         " gradients in a row were not finite (a smaller train.lr?)"};
      LONGHAUL_TRY(save_if_due());
    }
    return Done{};
  }

  // A model that is averaged in place is no model before its means have come. All ranks wait for
  // them: what they agree on comes with means.
  Status offer_score() {
    Status settled = Done{};
    if (arguments_.all_reduce)
      settled = patiently([&](Deadline deadline) { return replica_->settle(deadline); });
    if (!settled.ok()) return is_interrupted() ? Status(Done{}) : settled;
    if (scorer_) scorer_->offer(replica_->engine().steps_done(), replica_->engine().shared());
    return Done{};
  }

  // After the same steps on all ranks, and not before all have written the one before.
  Status save_if_due() {
    const std::uint64_t step = replica_->engine().steps_done();
    if (!checkpoints_.is_due(step, collective_->common_time(), collective_->kept_by_all()))
      return Done{};
    Status settled = patiently([&](Deadline deadline) { return replica_->settle(deadline); });
    if (!settled.ok()) return is_interrupted() ? Status(Done{}) : settled;
    State state = replica_->save();
    state.values["threads"] = workers_->count();  // for threads_for()
    save_layers(workload_->layers(), state);
    return checkpoints_.write(std::move(state), step, collective_->common_time());
  }

  // After the last gather no rank needs another.
  Status finish() {
    const Result<StepFacts> drained =
        patiently([&](Deadline deadline) { return replica_->finish(deadline); });
    if (!drained.ok()) return drained.error();
    const Engine& engine = replica_->engine();
    ByteWriter own;
    own.u64(digest_of(engine.shared()));
    LONGHAUL_TRY(compare(std::move(own).release(), "shared model"));
    group_.leave();
    return tell_the_end(engine);
  }

  Status tell_the_end(const Engine& engine) {
    if (scorer_) {
      scorer_.reset();  // what it was scoring is of an earlier model
      news_.evaluation(
          {.step = engine.steps_done(),
           .evaluation = workload_->evaluate(engine.shared(), static_cast<std::size_t>(-1)),
           .is_closing = true});
    }
    const bool saves = rank_.place.rank == 0 && !arguments_.save.empty();
    LONGHAUL_TRY(saves ? save_model(arguments_, job(), *workload_, engine) : Done{});
    news_.finished({.steps = engine.steps_done(),
                    .next = saves
                                ? "longhaul evaluate " + arguments_.save + ' ' + job().scenario.name
                                : std::string(),
                    .digest = digest_text(engine.shared()),
                    .late_steps = late_steps_,
                    .non_finite_steps = engine.non_finite_steps()});
    return Done{};
  }

  [[nodiscard]] TrainNews::Ending rest() const {
    return {.steps = replica_ ? replica_->engine().steps_done() : 0,
            .checkpoint = checkpoints_.are_written() ? checkpoints_.newest().string() : "",
            .next = command_to_resume(arguments_)};
  }

  const TrainCommandOptions& arguments_;
  RankJob rank_;
  trainer::C10dGroup& group_;
  RankCheckpoints checkpoints_;
  Clock clock_;
  TrainNews news_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<trainer::Collective> collective_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<Scorer> scorer_;  // of rank 0
  std::size_t late_steps_ = 0;
};

// Gloo's threads cannot be stopped while they wait for a rank that is gone.
[[noreturn]] void end_process(int exit_code) {
  std::cout.flush();
  std::cerr.flush();
  std::_Exit(exit_code);
}

}  // namespace

int run_collective(const TrainCommandOptions& arguments) {
  const trainer::Environment around = environment();
  Result<RankJob> rank = rank_job(arguments, around);
  if (!rank.ok()) return complain("train", rank.error());
  const Result<CheckpointOptions> checkpoints =
      checkpoint_options(arguments, "rank-" + std::to_string(rank->place.rank));
  if (!checkpoints.ok()) return complain("train", checkpoints.error());
  if (const Status saves = check_save(arguments); !saves.ok())
    return complain("train", saves.error());
  notice_interrupts();
  (void)std::signal(SIGPIPE, SIG_IGN);  // a rank that is gone while it is written to
  keep_freed_memory();
  const Result<std::unique_ptr<trainer::C10dGroup>> group = meet(*rank, around);
  if (is_interrupted()) return kExitInterrupted;
  if (!group.ok()) return complain("train", group.error());
  CollectiveRun run(arguments, std::move(rank).value(), **group, *checkpoints);
  Result<bool> ending = run.run();
  if (ending.ok() && *ending) return kExitDone;
  if (ending.ok()) {
    (*group)->end("interrupted by Ctrl-C");
    end_process(kExitInterrupted);
  }
  Error error = ending.error();
  if (error.code == ErrorCode::kClosed) error.message += run.hint();
  const int exit_code = complain("train", error);
  (*group)->end(ending.error().message);
  end_process(exit_code);
}

}  // namespace longhaul::apps
