// longhaul rehearse: hub and replicas as real processes on this machine, over emulated links.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>

#include "apps/longhaul/command.h"
#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/lab_files.h"
#include "apps/longhaul/rehearsal.h"
#include "longhaul/lab/study.h"
#include "longhaul/lab/summary.h"

namespace longhaul::apps {
namespace {

constexpr double kMostLateShare = 0.02;

struct RehearseArguments {
  std::string scenario = "demo";
  std::string recipes;
  std::string seeds;
  std::vector<std::string> settings;
  std::string out;
  bool json = false;
};

int complain(const Error& error) {
  std::cerr << "longhaul rehearse: " << error.message << '\n';
  return error.code == ErrorCode::kInvalidArgument ? kExitWrongUse : kExitFailed;
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// One line for the run and one for each replica: rewritten in place on a terminal, now and then
// elsewhere.
class LiveLines {
 public:
  explicit LiveLines(std::string target) : target_(std::move(target)) {}

  void show(const RehearsalView& view) {
    const double every = is_terminal_ ? 0.2 : 5.0;
    if (view.status.is_null() || view.time_s < next_s_) return;
    next_s_ = view.time_s + every;
    std::string text;
    const std::size_t count = lines_;
    if (is_terminal_ && count > 0) text = "\033[" + std::to_string(count) + "A";
    lines_ = 0;
    std::string head =
        view.recipe + ": " + formatted("%.1f s", view.time_s) + ", round " +
        std::to_string(view.status.at("next_round").get<std::size_t>()) +
        formatted(", keep %.3g %%", 100 * view.status.at("keep_ratio").get<double>()) +
        formatted(", %.0f steps late", view.status.at("delay_steps").get<double>());
    if (view.metric) head += ", " + target_ + formatted(" %.4f", *view.metric);
    add(text, head);
    for (const auto& replica : view.status.at("replicas")) {
      if (!is_terminal_) break;
      const auto rate = [&](const char* key) {
        return replica.at(key).is_null() ? std::string("-")
                                         : formatted("%.1f", replica.at(key).get<double>() / 1e6);
      };
      add(text,
          "  " + replica.at("name").get<std::string>() + "  step " +
              formatted("%4.0f", replica.at("step").get<double>()) +
              formatted("  loss %.3f", replica.at("loss").get<double>()) + "  link " +
              rate("up_bits_per_s") + " / " + rate("down_bits_per_s") + " Mbit/s " +
              formatted("%.0f ms", 1e3 * replica.at("latency_s").get<double>()) +
              formatted("  waiting %.0f %%", 100 * replica.at("waiting_share").get<double>()));
    }
    std::cerr << text << std::flush;
  }
  void next_run() {
    next_s_ = 0;
    lines_ = 0;
  }

 private:
  void add(std::string& text, const std::string& line) {
    text += is_terminal_ ? "\r\033[K" + line + '\n' : line + '\n';
    ++lines_;
  }
  bool is_terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::string target_;
  std::size_t lines_ = 0;
  double next_s_ = 0;
};

std::string prediction_text(const std::vector<lab::RunResult>& runs) {
  std::string text;
  for (const lab::RunResult& run : runs) {
    if (!run.predicted_step_time) continue;
    text += run.recipe + ", seed " + std::to_string(run.seed) + ": a step took " +
            to_string(run.step_time) + ", predicted " + to_string(*run.predicted_step_time) + '\n';
  }
  return text;
}

// False where the machine was too slow to stand in for the replicas.
bool was_in_time(const lab::RunResult& run) {
  const auto steps = static_cast<double>(run.steps * run.replicas);
  if (static_cast<double>(run.late_steps) <= kMostLateShare * steps) return true;
  std::cerr << "longhaul rehearse: " << run.recipe << ": " << run.late_steps << " of " << steps
            << " steps took longer than step_time: this machine is too slow or too busy for these "
               "replicas; raise train.step_time\n";
  return false;
}

int run_rehearse(const RehearseArguments& arguments) {
  std::vector<std::string> settings = arguments.settings;
  settings.insert(settings.begin(), "train.stop=target");
  const Result<v1::Task> first = task_of({.scenario = arguments.scenario, .settings = settings});
  if (!first.ok()) return complain(first.error());
  const Result<lab::Job> job = job_of(*first);
  if (!job.ok()) return complain(job.error());
  std::vector<std::string> recipes = lab::split_list(arguments.recipes);
  if (recipes.empty()) recipes = job->scenario.recipes;
  std::vector<std::uint64_t> seeds{1};
  if (!arguments.seeds.empty()) {
    Result<std::vector<std::uint64_t>> asked = lab::parse_seeds(arguments.seeds);
    if (!asked.ok()) return complain(std::move(asked).error().within("--seed"));
    seeds = std::move(asked).value();
  }
  const std::string out =
      arguments.out.empty() ? "longhaul-results/rehearse-" + job->scenario.name : arguments.out;
  for (const std::string& recipe : recipes) {
    const Result<v1::Task> task =
        task_of({.scenario = arguments.scenario, .settings = settings, .recipe = recipe});
    if (!task.ok()) return complain(task.error());
  }
  Result<LabFiles> files = LabFiles::open(out);
  if (!files.ok()) return complain(files.error());
  notice_interrupts();
  LiveLines lines(job->scenario.target.metric);
  bool is_in_time = true;
  for (const std::uint64_t seed : seeds) {
    for (const std::string& recipe : recipes) {
      if (is_interrupted()) break;
      lines.next_run();
      Rehearsal rehearsal(
          {.task = {.scenario = arguments.scenario,
                    .settings = settings,
                    .recipe = recipe,
                    .seed = seed},
           .directory = std::filesystem::path(out) / (recipe + "-" + std::to_string(seed))});
      const Result<lab::RunResult> run = rehearsal.run([&](const RehearsalView& view) {
        lines.show(view);
        return !is_interrupted();
      });
      if (!run.ok()) return complain(Error(run.error()).within(recipe));
      is_in_time = was_in_time(*run) && is_in_time;
      if (Status added = files->add(*run); !added.ok()) return complain(added.error());
    }
  }
  const Result<std::vector<lab::RunResult>> runs = files->finish(job->scenario);
  if (!runs.ok()) return complain(runs.error());
  if (arguments.json) {
    std::cout << lab_json(job->scenario, *runs, std::nullopt) << '\n';
  } else {
    if (!runs->empty()) std::cout << lab::summary_table(job->scenario, *runs) << '\n';
    std::cout << prediction_text(*runs) << "report: " << files->report().string() << '\n';
  }
  if (is_interrupted()) return kExitInterrupted;
  return is_in_time ? kExitDone : kExitFailed;
}

}  // namespace

void add_rehearse(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<RehearseArguments>();  // shared with the callback
  CLI::App* rehearse = program.add_subcommand(
      "rehearse", "Run recipes as real processes on this machine, over emulated links");
  rehearse
      ->add_option("scenario", arguments->scenario,
                   "Name of a built-in scenario, or a file that ends in .toml")
      ->capture_default_str();
  rehearse->add_option("--recipe", arguments->recipes,
                       "Recipes, such as d-sgd,auto (default: the scenario's)");
  rehearse->add_option("--seed", arguments->seeds, "Seeds, such as 1,2,3 (default: 1)");
  rehearse
      ->add_option("--set", arguments->settings,
                   "table.key=value, as if it stood in the scenario; repeatable")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  rehearse->add_option("--out", arguments->out,
                       "Directory for results.json, report.html, events.jsonl and logs (default: "
                       "./longhaul-results/rehearse-SCENARIO)");
  rehearse->add_flag("--json", arguments->json, "One JSON object on standard output");
  rehearse->footer(
      "Starts a hub, and for each replica of the scenario a process and a relay that emulates its\n"
      "link. A run ends at the target (--set train.stop=steps: after all steps).\n\nExamples:\n"
      "  longhaul rehearse\n"
      "  longhaul rehearse fashion-wan --recipe d-sgd,auto");
  rehearse->callback([=, &run] { run = [=] { return run_rehearse(*arguments); }; });
}

}  // namespace longhaul::apps
