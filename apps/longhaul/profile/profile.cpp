// longhaul profile: measures the layers of a model. That needs libtorch, so after parsing
// longhaul-torch takes over.
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/torch_program.h"
#include "apps/longhaul/profile/profile_options.h"

namespace longhaul::apps {
namespace {

// Everything that needs no model is checked before longhaul-torch is looked for.
int run_profile(const ProfileCommandOptions& arguments, const std::vector<std::string>& words) {
  const Result<Scenario> scenario = scenario_to_profile(arguments);
  if (!scenario.ok()) return complain("profile", scenario.error(), kExitWrongUse);
  const Status output = check_profile_output(arguments);
  if (!output.ok()) return complain("profile", output.error());
  return complain("profile", become_torch_program(words), kExitFailed);
}

}  // namespace

void add_profile(CLI::App& program, Run& run, const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<ProfileCommandOptions>();  // shared with the callback
  CLI::App* profile = add_profile_options(program, *arguments);
  profile->callback([=, &run] { run = [=] { return run_profile(*arguments, words); }; });
}

}  // namespace longhaul::apps
