#include "apps/longhaul_torch/lab_command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/lab/lab_files.h"
#include "longhaul/base/file.h"
#include "longhaul/base/workers.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/progress.h"
#include "longhaul/lab/replay.h"
#include "longhaul/lab/run.h"
#include "longhaul/lab/summary.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/checkpoint.h"
#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

using lab::RunResult;

// All runs of a study, one after the other, until one fails or someone interrupts.
class Study {
 public:
  // `digest`: of the study. `checkpoint`: of a run that was interrupted.
  Study(const std::vector<Scenario>& points, const LabCommandOptions& arguments, std::string digest,
        std::optional<State> checkpoint, LabFiles& files)
      : points_(points),
        checkpoint_every_(arguments.checkpoint_every),
        digest_(std::move(digest)),
        checkpoint_(std::move(checkpoint)),
        workers_(arguments.threads > 0 ? arguments.threads : all_cores()),
        files_(files),
        progress_(shows_progress(arguments.log) ? std::cerr : silent_, ::isatty(STDERR_FILENO) != 0,
                  clock_, runs_to_do(), points.front().train.steps) {}

  Status run() {
    for (const Scenario& point : points_) {
      if (std::ranges::all_of(point.recipes, [&](const auto& r) { return is_done(point, r); }))
        continue;
      trainer::WorkloadOptions options = trainer::workload_options(point, point.train.seed);
      options.threads = workers_.count();
      const std::unique_ptr<Workload> workload = LONGHAUL_TRY(trainer::make_workload(options));
      LONGHAUL_TRY(files_.start());
      for (const std::string& recipe : point.recipes) {
        if (is_interrupted()) return Done{};
        if (is_done(point, recipe)) continue;
        if (Status status = run_one(point, recipe, *workload); !status.ok()) {
          progress_.clear();
          return status;
        }
      }
    }
    progress_.clear();
    return Done{};
  }

 private:
  [[nodiscard]] bool is_done(const Scenario& point, const std::string& recipe) const {
    return std::ranges::any_of(files_.kept(), [&](const RunResult& run) {
      return run.recipe == recipe && run.settings == point.search && run.seed == point.train.seed;
    });
  }
  [[nodiscard]] std::size_t runs_to_do() const {
    std::size_t runs = 0;
    for (const Scenario& point : points_) {
      runs += static_cast<std::size_t>(std::ranges::count_if(
          point.recipes, [&](const auto& recipe) { return !is_done(point, recipe); }));
    }
    return runs;
  }

  [[nodiscard]] RunIdentity identity_of(const Scenario& point, const std::string& recipe) const {
    return {{"study", digest_},
            {"recipe", recipe},
            {"settings", point.search},
            {"seed", std::to_string(point.train.seed)}};
  }

  Status run_one(const Scenario& point, const std::string& recipe, Workload& workload) {
    std::string name = recipe + ", seed " + std::to_string(point.train.seed);
    if (!point.search.empty()) name += ", " + point.search;
    progress_.start_run(name);
    bool was_stopped = false;
    const auto after_step = [&](std::size_t done, std::size_t /*steps*/) {
      progress_.step(done);
      was_stopped = is_interrupted();
      return !was_stopped;
    };
    const RunIdentity identity = identity_of(point, recipe);
    Status saved = Done{};
    const auto save = [&](const State& state) {
      State checkpoint = state;
      save_identity(identity, checkpoint);
      if (saved.ok()) saved = write_file_atomically(files_.checkpoint(), to_bytes(checkpoint));
    };
    const bool is_resumed = checkpoint_ && check_identity(identity, *checkpoint_).ok();
    Result<RunResult> result = lab::run(point,
                                        {.recipe = recipe,
                                         .seed = point.train.seed,
                                         .progress = after_step,
                                         .save = save,
                                         .save_every = checkpoint_every_,
                                         .resume = is_resumed ? &*checkpoint_ : nullptr},
                                        workload, workers_);
    progress_.finish_run();
    if (!result.ok()) return std::move(result).error().within(name);
    if (!saved.ok()) return saved;
    result->settings = point.search;
    if (was_stopped && result->steps < point.train.steps) {
      result->status = lab::RunStatus::kInterrupted;
    } else {
      std::error_code ignored;
      std::filesystem::remove(files_.checkpoint(), ignored);
    }
    return files_.add(*result);
  }

  const std::vector<Scenario>& points_;
  std::size_t checkpoint_every_;
  std::string digest_;
  std::optional<State> checkpoint_;
  Clock clock_;
  Workers workers_;
  LabFiles& files_;
  std::ostream silent_{nullptr};  // swallows all
  lab::Progress progress_;
};

void print_results(const LabCommandOptions& arguments, const Scenario& scenario,
                   const std::vector<RunResult>& runs, const LabFiles& files) {
  std::optional<lab::Verdict> verdict;
  if (arguments.oracle) verdict = lab::verdict_of(runs);
  if (arguments.json) {
    std::cout << lab_json(scenario, runs, verdict) << '\n';
    return;
  }
  if (!runs.empty()) std::cout << lab::summary_table(scenario, runs) << '\n';
  if (verdict) std::cout << lab::verdict_text(*verdict) << '\n';
  if (!runs.empty()) std::cout << "report: " << files.report().string() << '\n';
}

template <typename T>
bool is_asked_for(const std::vector<T>& list, const T& one) {
  return list.empty() || std::ranges::find(list, one) != list.end();
}

// All runs of the directory, or those of the recipes and seeds that are asked for. Recipes that
// cannot be replayed are left out and named.
Status replay_runs(const std::string& directory, const Scenario& scenario,
                   const lab::StudyOptions& wanted, LabFiles& files) {
  const auto is_kept = [&](const RunResult& run) {
    return std::ranges::any_of(files.kept(), [&](const RunResult& kept) {
      return kept.recipe == run.recipe && kept.settings == run.settings && kept.seed == run.seed;
    });
  };
  std::vector<RunResult> runs = LONGHAUL_TRY(read_runs(directory));
  if (const std::string of = scenario_of(directory); !of.empty() && of != scenario.name)
    std::cerr << "longhaul lab: " << directory << " holds runs of " << of
              << ", which are timed on the links of " << scenario.name
              << " and judged by its target\n";
  std::size_t replayed = 0;
  std::set<std::string> told;
  for (RunResult& run : runs) {
    if (!is_asked_for(wanted.recipes, run.recipe) || !is_asked_for(wanted.seeds, run.seed))
      continue;
    if (is_kept(run)) {
      ++replayed;
      continue;
    }
    Result<RunResult> again = lab::replay(scenario, std::move(run));
    if (!again.ok()) {
      if (const std::string& why = again.error().message; told.insert(why).second)
        std::cerr << "longhaul lab: left out: " << why << '\n';
      continue;
    }
    ++replayed;
    LONGHAUL_TRY(files.start());
    LONGHAUL_TRY(files.add(*again));
  }
  if (replayed == 0)
    return Error{ErrorCode::kNotFound, "--replay " + directory + ": no run to replay"};
  return Done{};
}

std::filesystem::path directory_of(const LabCommandOptions& arguments, const Scenario& scenario) {
  if (!arguments.out.empty()) return arguments.out;
  return std::filesystem::path("longhaul-results") /
         (scenario.name + (arguments.replay.empty() ? "" : "-replay"));
}

// The checkpoint of the run that was interrupted; nothing if there is none.
Result<std::optional<State>> checkpoint_in(const LabFiles& files, bool is_resumed) {
  if (!is_resumed) return std::optional<State>();
  Result<State> found = read_checkpoint(files.checkpoint());
  if (found.ok()) return std::optional(std::move(found).value());
  if (found.error().code == ErrorCode::kNotFound) return std::optional<State>();
  return found.error();
}

}  // namespace

int run_lab(const LabCommandOptions& arguments) {
  const Result<lab::StudyOptions> request = study_request(arguments);
  if (!request.ok()) return complain("lab", request.error(), kExitWrongUse);
  const Result<std::vector<Scenario>> points = lab::study_points(*request);
  if (!points.ok()) return complain("lab", points.error(), kExitWrongUse);
  const Scenario& scenario = points->front();
  const std::filesystem::path out = directory_of(arguments, scenario);
  std::error_code ignored;
  if (!arguments.replay.empty() && std::filesystem::equivalent(out, arguments.replay, ignored))
    return complain("lab", {ErrorCode::kInvalidArgument,
                            "--out " + out.string() +
                                ": --replay reads from there; its results go into another "
                                "directory"});
  const std::string digest = study_digest(*request, scenario);
  Result<LabFiles> files =
      arguments.resume ? LabFiles::resume(out, digest) : LabFiles::open(out, digest);
  if (!files.ok()) return complain("lab", files.error(), kExitFailed);
  Result<std::optional<State>> checkpoint = checkpoint_in(*files, arguments.resume);
  if (!checkpoint.ok()) return complain("lab", checkpoint.error(), kExitFailed);
  notice_interrupts();
  Status outcome = Done{};
  if (!arguments.replay.empty())  // an oracle's recipes are run, and judged by all that is there
    outcome = replay_runs(arguments.replay, scenario,
                          arguments.oracle ? lab::StudyOptions{} : *request, *files);
  if (outcome.ok() && (arguments.replay.empty() || arguments.oracle))
    outcome = Study(*points, arguments, digest, std::move(checkpoint).value(), *files).run();
  const Result<std::vector<RunResult>> runs = files->finish(scenario, arguments.oracle);
  if (!outcome.ok()) return complain("lab", outcome.error());
  if (!runs.ok()) return complain("lab", runs.error(), kExitFailed);
  print_results(arguments, scenario, *runs, *files);
  if (!is_interrupted()) return kExitDone;
  if (!arguments.resume)
    std::cerr << "longhaul lab: interrupted; the same command with --resume goes on\n";
  else
    std::cerr << "longhaul lab: interrupted; the same command goes on\n";
  return kExitInterrupted;
}

}  // namespace longhaul::apps
