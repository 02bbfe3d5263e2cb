// longhaul hub: serves a run to the replicas that dial in.
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/hub/hub_options.h"
#include "apps/longhaul/hub/hub_service.h"
#include "apps/longhaul/hub/task_file.h"
#include "longhaul/access/authority.h"
#include "longhaul/access/members.h"
#include "longhaul/base/descriptors.h"
#include "longhaul/base/memory.h"
#include "longhaul/base/workers.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

// Only who was invited, under the name that the certificate says.
Admission admission_by(const std::string& directory) {
  return [directory](const std::string& name, const std::string& token,
                     const std::string& certified) -> Status {
    if (name != certified)
      return Error{ErrorCode::kMismatch, "the certificate is made out to another name"};
    const auto members = access::list_members(directory);
    if (!members.ok()) return Error{ErrorCode::kIo, "the hub cannot read who is invited"};
    return access::check_member(*members, name, token, access::wall_now());
  };
}

// For its owner only, if it is new: it holds the model. One that exists stays as it is.
Status make_run_directory(std::filesystem::path directory) {
  const auto failed = [&](const std::string& why) {
    return Error{ErrorCode::kIo, directory.string() + ": cannot make this directory: " + why};
  };
  if (!directory.has_filename()) directory = directory.parent_path();  // "run1/"
  std::error_code failure;
  if (directory.has_parent_path())
    std::filesystem::create_directories(directory.parent_path(), failure);
  if (failure) return failed(failure.message());
  if (::mkdir(directory.c_str(), S_IRWXU) == 0) return Done{};
  const int cause = errno;
  if (std::filesystem::is_directory(directory, failure)) return Done{};
  return failed(std::generic_category().message(cause));
}

// One hub at a time, for as long as this lives.
Result<std::optional<OwnedFd>> own_directory(const std::string& directory) {
  if (directory.empty()) return std::optional<OwnedFd>();
  LONGHAUL_TRY(make_run_directory(directory));
  OwnedFd lock =
      LONGHAUL_TRY(access::lock_directory(directory, "another hub runs on this directory"));
  return std::optional(std::move(lock));
}

int print_hub_config(TaskOptions request, const v1::Task& task) {
  request.seed = task.seed();
  const Result<Job> job = job_of(task, catalogue());
  if (job.ok() && !job->scenario.train.stop) request.settings.emplace_back("train.stop=target");
  const Result<std::string> text = config_text(request, {task.recipe()}, catalogue());
  if (!text.ok()) return complain("hub", text.error(), kExitWrongUse);
  std::cout << *text;
  return kExitDone;
}

Result<v1::Task> task_of_hub(const HubCommandOptions& arguments) {
  const std::string& recipe = arguments.task.recipe;
  if (recipe.find(',') != std::string::npos)
    return Error{ErrorCode::kInvalidArgument, "--recipe: a hub runs one recipe, got " + recipe};
  return task_in(arguments.directory, arguments.task, arguments.seed);
}

void tell_listening(const HubCommandOptions& arguments, int port, std::size_t awaited,
                    const Log& log) {
  const std::string at =
      listening_address(arguments.listen).value().host + ':' + std::to_string(port);
  if (arguments.json) return print_event("listening", {{"address", at}, {"port", port}});
  log.info("listening on " + at);
  if (awaited > 0)
    log.info("starts when " + std::to_string(awaited) +
             (awaited == 1 ? " replica is here" : " replicas are here"));
}

// Precondition: hub_options() accepted the arguments. False: it was interrupted.
Result<bool> serve(const HubCommandOptions& arguments, const v1::Task& task, HubOptions options) {
  std::optional<TlsKeys> tls;
  if (!arguments.keys.empty()) {
    tls = LONGHAUL_TRY(access::load_hub_keys(arguments.keys, access::wall_now()));
    options.admit = admission_by(arguments.keys);
  }
  const auto directory = LONGHAUL_TRY(own_directory(arguments.directory));
  notice_interrupts();
  keep_freed_memory();
  raise_descriptor_limit();
  const Clock clock;
  const Log log = hub_log(arguments);
  if (arguments.directory.empty())
    log.warning("no --dir: if this hub crashes or is stopped, the run is lost");
  const auto lines = arguments.json ? std::make_shared<Lines>(kMostLines) : nullptr;
  const std::size_t start_with = options.start_with;
  const std::uint64_t steps = options.training.steps;
  options.threads = all_cores();
  options.watcher = HubWatcher(lines, arguments.tells_rounds, log);
  const std::unique_ptr<Hub> hub = LONGHAUL_TRY(Hub::start(std::move(options), clock, log));
  const std::unique_ptr<GrpcServer> server =
      LONGHAUL_TRY(GrpcServer::start(hub->acceptor(), arguments.listen, tls));
  LONGHAUL_TRY(arguments.directory.empty() ? Done{} : write_task(arguments.directory, task));
  tell_listening(arguments, server->port(), hub->status().is_started ? 0 : start_with, log);
  return HubService(*hub, arguments, task, steps, lines).run();
}

int run_hub(const HubCommandOptions& arguments) {
  const Result<v1::Task> task = task_of_hub(arguments);
  if (!task.ok()) return complain("hub", task.error(), kExitWrongUse);
  if (arguments.prints_config) return print_hub_config(arguments.task, *task);
  Result<HubOptions> options = hub_options(arguments, *task);
  if (!options.ok()) return complain("hub", options.error(), kExitWrongUse);
  const Result<bool> served = serve(arguments, *task, std::move(options).value());
  if (!served.ok()) return complain("hub", served.error(), kExitFailed);
  return *served ? kExitDone : kExitInterrupted;
}

}  // namespace

void add_hub(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<HubCommandOptions>();  // shared with the callback
  add_hub_options(program, *arguments)->callback([=, &run] {
    run = [=] { return run_hub(*arguments); };
  });
}

}  // namespace longhaul::apps
