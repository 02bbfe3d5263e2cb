#include "apps/longhaul/profile/profile_options.h"

#include <utility>

#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/list_option.h"
#include "longhaul/base/file.h"
#include "longhaul/job/task.h"

namespace longhaul::apps {

CLI::App* add_profile_options(CLI::App& program, ProfileCommandOptions& arguments) {
  CLI::App* profile = program.add_subcommand(
      "profile", "Measure the forward and backward time of each layer of a scenario's model");
  profile
      ->add_option("scenario", arguments.scenario,
                   "Name of a built-in scenario, or a file that ends in .toml")
      ->required();
  CLI::Option* out = profile->add_option("--out", arguments.out,
                                         "Write the profile to this file (JSON), too; -: standard "
                                         "output");
  profile
      ->add_flag("--force", arguments.is_forced,
                 "With --out: replace a file that Longhaul did not write, too")
      ->needs(out);
  profile
      ->add_option("--steps", arguments.steps,
                   "Steps to take the medians of; as many are computed without hooks, for "
                   "comparison")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  profile
      ->add_option("--threads", arguments.threads,
                   "Threads of torch for one gradient (default: all cores)")
      ->check(CLI::Range(1, 256));
  add_settings(*profile, arguments.settings);
  profile->add_flag("--json", arguments.json, "One JSON object in place of the table");
  profile->footer(
      "Layers stand in backward order: the output side comes first. Times are medians over real\n"
      "steps of replica 0 with the scenario's batch. Bytes are those of fp32 parameters; tied\n"
      "parameters count once. Nothing is trained.\n\n"
      "Examples:\n"
      "  longhaul profile fashion-wan\n"
      "  longhaul profile text-wan --set model.width=768 --set model.layers=12 --set "
      "model.heads=12 --set train.batch=1 --out gpt.json");
  return profile;
}

Result<Scenario> scenario_to_profile(const ProfileCommandOptions& arguments) {
  return scenario_of({.scenario = arguments.scenario, .settings = arguments.settings}, catalogue());
}

Status check_profile_output(const ProfileCommandOptions& arguments) {
  if (arguments.out.empty()) return Done{};
  const auto target = output_target(arguments.out, kProfileMark, arguments.is_forced);
  if (!target.ok()) return Error(target.error()).within("--out");
  return Done{};
}

}  // namespace longhaul::apps
