// longhaul train: a replica. Training needs libtorch, so after parsing longhaul-torch takes over.
#include "apps/longhaul/train/train_options.h"

#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/torch_program.h"

namespace longhaul::apps {
namespace {

// The error of the arguments, or the reason why longhaul-torch could not take over.
Error try_train(const TrainCommandOptions& arguments, const std::vector<std::string>& words) {
  if (!arguments.collective.empty()) {
    const Result<CheckpointOptions> options = checkpoint_options(arguments, "");
    return options.ok() ? become_torch_program(words) : options.error();
  }
  const HubAccess access =
      LONGHAUL_TRY(hub_access(arguments.invite, arguments.hub, arguments.name));
  LONGHAUL_TRY(longest_wait(arguments));
  const Result<CheckpointOptions> checkpoints = checkpoint_options(arguments, access.name);
  return checkpoints.ok() ? become_torch_program(words) : checkpoints.error();
}

int run_train(const TrainCommandOptions& arguments, const std::vector<std::string>& words) {
  return complain("train", try_train(arguments, words));
}

}  // namespace

void add_train(CLI::App& program, Run& run, const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<TrainCommandOptions>();  // shared with the callback
  CLI::App* train = add_train_options(program, *arguments);
  train->callback([=, &run] { run = [=] { return run_train(*arguments, words); }; });
}

}  // namespace longhaul::apps
