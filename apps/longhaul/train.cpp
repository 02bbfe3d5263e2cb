// longhaul train: a replica. Training needs libtorch, so after parsing longhaul-torch takes over.
#include "apps/longhaul/train_options.h"

#include <iostream>
#include <memory>

#include "apps/longhaul/command.h"
#include "apps/longhaul/torch_program.h"

namespace longhaul::apps {
namespace {

int run_train(const TrainArguments& arguments, const std::vector<std::string>& words) {
  const Result<HubAccess> access = hub_access(arguments);
  Error error{ErrorCode::kIo, ""};
  int exit_code = kExitFailed;
  if (access.ok()) {
    error = become_torch_program(words);
  } else {
    error = access.error();
    if (error.code == ErrorCode::kInvalidArgument) exit_code = kExitWrongUse;
  }
  std::cerr << "longhaul train: " << error.message << '\n';
  return exit_code;
}

}  // namespace

void add_train(CLI::App& program, Run& run, const std::vector<std::string>& words) {
  const auto arguments = std::make_shared<TrainArguments>();  // shared with the callback
  CLI::App* train = add_train_options(program, *arguments);
  train->callback([=, &run] { run = [=] { return run_train(*arguments, words); }; });
}

}  // namespace longhaul::apps
