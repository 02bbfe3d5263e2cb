// longhaul rehearse: hub and replicas as real processes on this machine, over emulated links.
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/list_option.h"
#include "apps/longhaul/command/log_options.h"
#include "apps/longhaul/command/option_checks.h"
#include "apps/longhaul/lab/lab_files.h"
#include "apps/longhaul/rehearse/live_lines.h"
#include "longhaul/base/text.h"
#include "longhaul/lab/study.h"
#include "longhaul/lab/summary.h"
#include "longhaul/rehearsal/rehearsal.h"
#include "longhaul/session/interrupt.h"

namespace longhaul::apps {
namespace {

constexpr double kFewLateShare = 0.02;  // of steps: more than that is told

struct RehearseCommandOptions {
  std::string scenario = "demo";
  std::string recipes;
  std::string seeds;
  std::vector<std::string> settings;
  std::string out;
  std::size_t faults = 0;
  std::uint64_t fault_seed = 1;
  std::string duration;
  bool keeps_books = false;
  bool print_config = false;
  bool json = false;
  LogOptions log;
};

// What a rehearsal is for: is a step as long as predicted, and are all models the same?
std::string prediction_text(const std::vector<lab::RunResult>& runs) {
  std::string text = "Real time, emulated links:\n";
  for (const lab::RunResult& run : runs) {
    if (!run.predicted_step_time) continue;
    text += "  " + run.recipe + ", seed " + std::to_string(run.seed) + ": a step took " +
            to_string(run.step_time) + ", predicted " + to_string(*run.predicted_step_time) +
            formatted(" (%+.1f %%); ", 100 * (run.step_time / *run.predicted_step_time - 1));
    text +=
        run.status == lab::RunStatus::kDiverged
            ? "diverged\n"
            : "all " + std::to_string(run.replicas) + " models equal (digest " + run.digest + ")\n";
  }
  return text;
}

// Times of a machine that was too slow to stand in for the replicas are real, but not theirs.
void tell_if_late(const lab::RunResult& run) {
  const auto steps = static_cast<double>(run.steps * run.replicas);
  if (static_cast<double>(run.late_steps) <= kFewLateShare * steps) return;
  std::cerr << "longhaul rehearse: " << run.recipe << ": " << run.late_steps << " of " << steps
            << " steps took longer than step_time: this machine is too slow or too busy for these "
               "replicas; raise train.step_time\n";
}

std::filesystem::path directory_of(const RehearseCommandOptions& arguments, const Job& job) {
  if (!arguments.out.empty()) return arguments.out;
  return "longhaul-results/rehearse-" + job.scenario.name;
}

// The job of the first run; without a setting, runs end at their target.
Result<Job> first_job(RehearseCommandOptions& arguments) {
  arguments.settings.insert(arguments.settings.begin(), "train.stop=target");
  const v1::Task first = LONGHAUL_TRY(
      task_of({.scenario = arguments.scenario, .settings = arguments.settings}, catalogue()));
  return job_of(first, catalogue());
}

Result<FaultOptions> faults_of(const RehearseCommandOptions& arguments, const Job& job) {
  FaultOptions faults{.count = arguments.faults, .seed = arguments.fault_seed};
  if (!arguments.duration.empty()) {
    const Result<Seconds> duration = parse_duration(arguments.duration);
    if (!duration.ok()) return Error(duration.error()).within("--for");
    faults.duration = *duration;
  }
  if (faults.is_wanted() && job.scenario.train.stop != StopAt::kTarget)
    return Error{ErrorCode::kInvalidArgument, "--faults: a run with faults ends at its target"};
  return faults;
}

// All runs, in their order, checked before anything starts.
Result<std::vector<Rehearsal::Options>> runs_of(const RehearseCommandOptions& arguments,
                                                const Job& job) {
  std::vector<std::string> recipes = split_list(arguments.recipes);
  if (recipes.empty()) recipes = job.scenario.recipes;
  std::vector<std::uint64_t> seeds{1};
  if (!arguments.seeds.empty()) {
    Result<std::vector<std::uint64_t>> asked = lab::parse_seeds(arguments.seeds);
    if (!asked.ok()) return std::move(asked).error().within("--seed");
    seeds = std::move(asked).value();
  }
  const std::filesystem::path out = directory_of(arguments, job);
  std::vector<Rehearsal::Options> runs;
  for (const std::uint64_t seed : seeds) {
    for (const std::string& recipe : recipes)
      runs.push_back({.task = {.scenario = arguments.scenario,
                               .settings = arguments.settings,
                               .recipe = recipe,
                               .seed = seed},
                      .catalogue = catalogue(),
                      .programs = program_directory(),
                      .directory = out / (recipe + "-" + std::to_string(seed)),
                      .keeps_books = arguments.keeps_books,
                      .log_level = arguments.log.level});
  }
  for (const Rehearsal::Options& run : runs) {
    (void)LONGHAUL_TRY(task_of(run.task, catalogue()));
  }
  const FaultOptions faults = LONGHAUL_TRY(faults_of(arguments, job));
  for (Rehearsal::Options& run : runs) run.faults = faults;
  return runs;
}

// Runs one after the other. A failure ends it; what was done before stays.
Status rehearse_all(const std::vector<Rehearsal::Options>& runs, const TargetOptions& target,
                    bool is_shown, LabFiles& files) {
  LiveLines lines(name_of(target.metric));
  for (const Rehearsal::Options& options : runs) {
    if (is_interrupted()) return Done{};
    lines.next_run();
    Rehearsal rehearsal(options, [&](const RehearsalView& view) {
      if (is_shown) lines.show(view);
      return !is_interrupted();
    });
    const Result<lab::RunResult> run = rehearsal.run();
    if (!run.ok() && is_interrupted()) return Done{};
    if (!run.ok()) return Error(run.error()).within(options.task.recipe);
    if (options.faults.is_wanted()) {
      if (is_shown) std::cerr << options.task.recipe << ": " << rehearsal.fault_report() << '\n';
    } else {
      tell_if_late(*run);
    }
    LONGHAUL_TRY(files.start());
    LONGHAUL_TRY(files.add(*run));
  }
  return Done{};
}

int print_rehearsed_config(const RehearseCommandOptions& arguments,
                           const std::vector<Rehearsal::Options>& runs) {
  TaskOptions request{.scenario = arguments.scenario, .settings = arguments.settings};
  std::vector<std::string> recipes;
  for (const Rehearsal::Options& run : runs) {
    if (run.task.seed != runs.front().task.seed)
      return complain("rehearse",
                      {ErrorCode::kInvalidArgument, "--print-config: expected one seed"});
    recipes.push_back(run.task.recipe);
  }
  if (!runs.empty()) request.seed = runs.front().task.seed;
  const Result<std::string> text = config_text(request, recipes, catalogue());
  if (!text.ok()) return complain("rehearse", text.error(), kExitWrongUse);
  std::cout << *text;
  return kExitDone;
}

int run_rehearse(RehearseCommandOptions arguments) {
  const Result<Job> job = first_job(arguments);
  if (!job.ok()) return complain("rehearse", job.error(), kExitWrongUse);
  const Scenario& scenario = job->scenario;
  const Result<std::vector<Rehearsal::Options>> wanted = runs_of(arguments, *job);
  if (!wanted.ok()) return complain("rehearse", wanted.error(), kExitWrongUse);
  if (arguments.print_config) return print_rehearsed_config(arguments, *wanted);
  Result<LabFiles> files = LabFiles::open(directory_of(arguments, *job));
  if (!files.ok()) return complain("rehearse", files.error(), kExitFailed);
  notice_interrupts();
  (void)std::signal(SIGPIPE, SIG_IGN);  // a child that ends while it is written to
  const Status rehearsed =
      rehearse_all(*wanted, scenario.target, shows_progress(arguments.log), *files);
  const Result<std::vector<lab::RunResult>> runs = files->finish(scenario);
  if (!runs.ok()) return complain("rehearse", runs.error(), kExitFailed);
  if (arguments.json) {
    if (rehearsed.ok() || !runs->empty())
      std::cout << lab_json(scenario, *runs, std::nullopt) << '\n';
  } else if (!runs->empty()) {
    std::cout << lab::summary_table(scenario, *runs) << '\n'
              << prediction_text(*runs) << "report: " << files->report().string() << '\n';
  }
  if (!rehearsed.ok()) return complain("rehearse", rehearsed.error(), kExitFailed);
  return is_interrupted() ? kExitInterrupted : kExitDone;
}

void add_fault_options(CLI::App& rehearse, RehearseCommandOptions& arguments) {
  rehearse
      .add_option("--faults", arguments.faults,
                  "Cause at least this many faults at random times: processes killed or stopped, "
                  "links cut or reset, the hub killed and started again")
      ->check(whole_number());
  rehearse.add_option("--fault-seed", arguments.fault_seed, "Seed of the faults")
      ->capture_default_str()
      ->check(whole_number());
  rehearse.add_option("--for", arguments.duration,
                      "Cause faults for at least this long, such as 20min");
}

constexpr const char* kRehearseFooter =
    "Starts a hub, and for each replica of the scenario a process and a relay that emulates its\n"
    "link. A run ends at the target (--set train.stop=steps: after all steps). With faults it\n"
    "ends when they are over, everyone is back and the target is reached; then all models must "
    "be\n"
    "equal, and every round closed once.\n\nExamples:\n"
    "  longhaul rehearse\n"
    "  longhaul rehearse fashion-wan --recipe d-sgd,auto\n"
    "  longhaul rehearse smoke --recipe auto --set train.steps=100000 --faults 50";

}  // namespace

void add_rehearse(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<RehearseCommandOptions>();  // shared with the callback
  CLI::App* rehearse = program.add_subcommand(
      "rehearse", "Run recipes as real processes on this machine, over emulated links");
  rehearse
      ->add_option("scenario", arguments->scenario,
                   "Name of a built-in scenario, or a file that ends in .toml")
      ->capture_default_str();
  rehearse->add_option("--recipe", arguments->recipes,
                       "Recipes, such as d-sgd,auto (default: the scenario's)");
  rehearse->add_option("--seed", arguments->seeds, "Seeds, such as 1,2,3 (default: 1)");
  add_settings(*rehearse, arguments->settings);
  rehearse->add_option(
      "--out", arguments->out,
      "Directory for report.html, results.json and .csv, events.jsonl and logs (default: "
      "./longhaul-results/rehearse-SCENARIO)");
  add_fault_options(*rehearse, *arguments);
  rehearse->add_flag(
      "--books", arguments->keeps_books,
      "Record in --out what each replica submits and merges, for tests/e2e/books.py");
  rehearse->add_flag(
      "--print-config", arguments->print_config,
      "Do not run: print the scenario with all settings applied, as a scenario file");
  rehearse->add_flag("--json", arguments->json, "One JSON object on standard output");
  add_log_options(*rehearse, arguments->log);
  rehearse->footer(kRehearseFooter);
  rehearse->callback([=, &run] { run = [=] { return run_rehearse(*arguments); }; });
}

}  // namespace longhaul::apps
