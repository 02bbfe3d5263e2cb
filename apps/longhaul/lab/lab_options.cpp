#include "apps/longhaul/lab/lab_options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/list_option.h"
#include "longhaul/base/text.h"
#include "longhaul/codec/digest.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::apps {
namespace {

std::string footer() {
  std::string text = "Recipes:\n";
  for (const Recipe& recipe : all_recipes()) {
    const std::string name(recipe.name);
    text += "  " + name + std::string(name.size() < 18 ? 18 - name.size() : 1, ' ') +
            std::string(recipe.summary) + '\n';
  }
  text += "\nBuilt-in scenarios:";
  for (const std::string& name : built_in_scenarios(catalogue())) text += ' ' + name;
  return text +
         "\n\nExamples:\n"
         "  longhaul lab fashion-wan --recipe d-sgd,dd-ef-sgd\n"
         "  longhaul lab fashion-wan --recipe 'dd-ef-sgd:keep_ratio=0.05:delay_steps=3' --seed "
         "1,2,3\n"
         "  longhaul lab fashion-wan --set link.up=20mbit --grid train.lr=0.02,0.05,0.1\n"
         "  longhaul lab fashion-varying --oracle --recipe auto,frozen\n"
         "\nExits with 0 when the runs are done (also when a target was not reached), 1 when a run "
         "failed or\ndata is missing, 2 on wrong use, 130 when interrupted.";
}

// A replay trains nothing: what would change training cannot be set.
Status check_replay(const lab::StudyOptions& request) {
  if (!request.grid.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "--replay: not together with --grid; replay once for each value, with --set"};
  for (const std::string& setting : request.settings) {
    const std::string key = setting.substr(0, setting.find('='));
    const std::string table = key.substr(0, key.find('.'));
    if (table != "link" && table != "replica" && table != "target")
      return Error{ErrorCode::kInvalidArgument,
                   "--set " + key +
                       ": --replay trains nothing; links, replicas' step times and the target can "
                       "be set"};
  }
  return Done{};
}

}  // namespace

CLI::App* add_lab_options(CLI::App& program, LabCommandOptions& arguments) {
  CLI::App* lab = program.add_subcommand(
      "lab", "Run recipes of a scenario on a virtual clock: real training, modelled links");
  lab->footer(footer);
  lab->add_option("scenario", arguments.scenario,
                  "Name of a built-in scenario, or a file that ends in .toml")
      ->required();
  lab->add_option("--recipe", arguments.recipes,
                  "Recipes, such as d-sgd,dd-ef-sgd:delay_steps=3 (default: the scenario's)");
  lab->add_option("--seed", arguments.seeds, "Seeds, such as 1,2,3 (default: the scenario's)");
  add_settings(*lab, arguments.settings);
  add_list(*lab, "--grid", arguments.grid,
           "Run once for each value: table.key=value,value; repeatable, for every combination");
  lab->add_option("--threads", arguments.threads,
                  "Threads; results do not depend on it (default: all cores)")
      ->check(CLI::Range(1, 256));
  lab->add_option("--out", arguments.out,
                  "Directory for report.html, results.json and .csv, and events.jsonl (default: "
                  "./longhaul-results/SCENARIO, and SCENARIO-replay for --replay)");
  lab->add_option("--checkpoint-every", arguments.checkpoint_every,
                  "Write a checkpoint every N steps; Ctrl-C always writes one (fixed plans only)");
  lab->add_flag(
      "--resume", arguments.resume,
      "Continue an earlier lab in --out: finished runs are skipped, and an interrupted run "
      "continues from its checkpoint (with a planner: from its start)");
  lab->add_option("--replay", arguments.replay,
                  "Do not train: recompute the times of the runs in this directory of results for "
                  "the scenario's links (fixed plans only)");
  lab->add_flag(
      "--oracle", arguments.oracle,
      "Compare the recipes (default: auto) with the best fixed plan of a grid and with a "
      "planner that knows the links in advance; runs end at the target. With --replay, the "
      "fixed plans are read from there");
  lab->add_flag("--print-config", arguments.print_config,
                "Do not run: print the scenario with all settings applied, as a scenario file");
  lab->add_flag("--json", arguments.json, "One JSON object on standard output");
  add_log_options(*lab, arguments.log);
  return lab;
}

std::string study_digest(const lab::StudyOptions& request, const Scenario& scenario) {
  std::ostringstream text;
  const auto add_file = [&](const std::filesystem::path& path) {
    const std::ifstream file(path, std::ios::binary);
    text << file.rdbuf();
    text.clear();  // an empty file is none the worse
  };
  add_file(scenario_path(request.scenario, request.catalogue));
  for (const std::string& setting : request.settings) text << '\n' << setting;
  std::set<std::string> traces;
  for (const ReplicaOptions& replica : scenario.replicas) {
    if (!replica.link.trace.empty() && traces.insert(replica.link.trace).second)
      add_file(replica.link.trace);
  }
  const std::string all = text.str();
  std::ostringstream digest;
  digest << std::hex << digest_of(std::as_bytes(std::span(all)));
  return digest.str();
}

Result<lab::StudyOptions> study_request(const LabCommandOptions& arguments) {
  lab::StudyOptions request{.scenario = arguments.scenario,
                            .catalogue = catalogue(),
                            .recipes = split_list(arguments.recipes)};
  if (!arguments.seeds.empty()) {
    Result<std::vector<std::uint64_t>> seeds = lab::parse_seeds(arguments.seeds);
    if (!seeds.ok()) return std::move(seeds).error().within("--seed");
    request.seeds = std::move(seeds).value();
  }
  Status are_settings = check_settings(arguments.settings);
  if (!are_settings.ok()) return std::move(are_settings).error().within("--set");
  request.settings = arguments.settings;
  for (const std::string& text : arguments.grid) {
    Result<std::vector<std::string>> axis = lab::parse_grid_axis(text);
    if (!axis.ok()) return std::move(axis).error().within("--grid");
    request.grid.push_back(std::move(axis).value());
  }
  if (!arguments.oracle) {
    LONGHAUL_TRY(arguments.replay.empty() ? Done{} : check_replay(request));
    return request;
  }
  if (!request.grid.empty())
    return Error{ErrorCode::kInvalidArgument, "--oracle: not together with --grid"};
  if (request.recipes.empty()) request.recipes = {"auto"};
  request.recipes.emplace_back(lab::kClairvoyant);
  if (arguments.replay.empty())
    std::ranges::copy(lab::fixed_plans(), std::back_inserter(request.recipes));
  request.settings.insert(request.settings.begin(), "train.stop=target");
  return request;
}

}  // namespace longhaul::apps
