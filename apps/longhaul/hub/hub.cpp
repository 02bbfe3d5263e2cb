// longhaul hub: serves a run to the replicas that dial in.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
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
#include "apps/longhaul/command/log_options.h"
#include "apps/longhaul/command/option_checks.h"
#include "apps/longhaul/command/rate_option.h"
#include "apps/longhaul/hub/hub_service.h"
#include "apps/longhaul/hub/task_file.h"
#include "longhaul/access/authority.h"
#include "longhaul/access/members.h"
#include "longhaul/access/names.h"
#include "longhaul/base/descriptors.h"
#include "longhaul/base/memory.h"
#include "longhaul/base/owned_fd.h"
#include "longhaul/base/units.h"
#include "longhaul/base/workers.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/hub.h"
#include "longhaul/job/task.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

struct HubCommandOptions {
  AskedTask task;
  std::string listen = "127.0.0.1:7070";
  std::string directory;
  std::string keys;
  bool is_insecure = false;
  std::size_t start_with = 0;  // 0: all replicas of the scenario
  std::string patience = "30s";
  std::string most_params;  // empty: what fits into memory
  std::optional<Bandwidth> rate;
  std::size_t least = 1;  // members of a round
  bool accepts_loss = false;
  bool prints_config = false;
  bool is_scored_elsewhere = false;
  bool json = false;
  bool tells_rounds = false;
  std::string status_every = "10s";
  LogOptions log;
};

// An address to listen on may leave the port to the system.
Result<access::Address> listening_address(const std::string& text) {
  const bool is_open = text.ends_with(":0");
  Result<access::Address> address =
      access::parse_address(is_open ? text.substr(0, text.size() - 1) + "1" : text);
  if (address.ok()) return address;
  return Error{ErrorCode::kInvalidArgument,
               "expected HOST:PORT such as 0.0.0.0:7070 or [::]:7070 with a port from 0 (the "
               "system chooses one) to 65535, got " +
                   text};
}

// A copy of the model with the state of its optimizer, updates and a mean of them take about so
// much.
constexpr std::uint64_t kBytesPerParameter = 32;

Result<std::uint64_t> most_elements(const HubCommandOptions& arguments) {
  if (arguments.most_params.empty())
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / kBytesPerParameter;
  Result<std::uint64_t> most = parse_count(arguments.most_params);
  if (!most.ok()) return std::move(most).error().within("--most-params");
  return most;
}

Result<HubOptions> hub_options(const HubCommandOptions& arguments, const v1::Task& task) {
  const Job job = LONGHAUL_TRY(job_of(task, catalogue()));
  const EngineOptions engine = LONGHAUL_TRY(engine_options(job, {}));
  if (engine.recipe.is_free || engine.recipe.planner == PlannerKind::kClairvoyant)
    return Error{ErrorCode::kInvalidArgument, "--recipe: " + std::string(engine.recipe.name) +
                                                  " is for the lab: no link is free or foreseen"};
  Result<Seconds> patience = parse_duration(arguments.patience);
  if (!patience.ok()) return std::move(patience).error().within("--patience");
  const std::size_t replicas = job.scenario.replicas.size();
  const std::uint64_t most = LONGHAUL_TRY(most_elements(arguments));
  std::vector<float> weights;
  weights.reserve(replicas);
  for (const ReplicaOptions& replica : job.scenario.replicas)
    weights.push_back(static_cast<float>(replica.weight));
  for (const auto& [option, count] :
       {std::pair("--least", arguments.least), std::pair("--start-with", arguments.start_with)}) {
    if (count > replicas)
      return Error{ErrorCode::kInvalidArgument,
                   std::string(option) + ": expected at most " + std::to_string(replicas) +
                       ", the replicas of the scenario, got " + std::to_string(count)};
  }
  return HubOptions{.training = {.engine = engine,
                                 .steps = job.scenario.train.steps,
                                 .replicas = replicas,
                                 .policy = {.least = arguments.least},
                                 .directory = arguments.directory,
                                 .accepts_loss = arguments.accepts_loss},
                    .task = task,
                    .start_with = arguments.start_with > 0 ? arguments.start_with : replicas,
                    .patience = *patience,
                    .rate = arguments.rate,
                    .weights = std::move(weights),
                    .most_elements = most,
                    .evaluates = !arguments.is_scored_elsewhere,
                    .target = job.scenario.target,
                    .ends_at_target = !arguments.is_scored_elsewhere &&
                                      job.scenario.train.stop != StopAt::kSteps};
}

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
  const Result<Job> job = job_of(task, catalogue());
  if (job.ok() && !job->scenario.train.stop) request.settings.emplace_back("train.stop=target");
  const Result<std::string> text = config_text(request, {task.recipe()}, catalogue());
  if (!text.ok()) return complain("hub", text.error(), kExitWrongUse);
  std::cout << *text;
  return kExitDone;
}

// The command that goes on with this run: the task is in the directory, all else is not.
std::string again(const HubCommandOptions& arguments) {
  if (arguments.directory.empty()) return {};
  const HubCommandOptions usual;
  std::string command = "longhaul hub --dir " + arguments.directory;
  const auto add = [&](const char* option, const std::string& value, bool is_usual) {
    if (!is_usual) command.append(" ").append(option).append(" ").append(value);
  };
  add("--listen", arguments.listen, arguments.listen == usual.listen);
  add("--keys", arguments.keys, arguments.keys.empty());
  if (arguments.is_insecure) command += " --insecure";
  add("--least", std::to_string(arguments.least), arguments.least == usual.least);
  add("--start-with", std::to_string(arguments.start_with), arguments.start_with == 0);
  add("--patience", arguments.patience, arguments.patience == usual.patience);
  add("--most-params", arguments.most_params, arguments.most_params.empty());
  if (arguments.rate) add("--rate", to_string(*arguments.rate), false);
  return command;
}

int run_hub(const HubCommandOptions& arguments) {
  const std::string& recipe = arguments.task.request.recipe;
  if (recipe.find(',') != std::string::npos)
    return complain("hub",
                    {ErrorCode::kInvalidArgument, "--recipe: a hub runs one recipe, got " + recipe},
                    kExitWrongUse);
  const Result<v1::Task> task = task_in(arguments.directory, arguments.task);
  if (!task.ok()) return complain("hub", task.error(), kExitWrongUse);
  if (arguments.prints_config) {
    TaskOptions request = arguments.task.request;
    request.seed = task->seed();
    return print_hub_config(request, *task);
  }
  const Result<access::Address> address = listening_address(arguments.listen);
  if (!address.ok())
    return complain("hub", Error(address.error()).within("--listen"), kExitWrongUse);
  if (!arguments.keys.empty() && arguments.is_insecure)
    return complain("hub", {ErrorCode::kInvalidArgument, "--insecure: not together with --keys"},
                    kExitWrongUse);
  if (arguments.keys.empty() && !arguments.is_insecure && !access::is_loopback(*address))
    return complain("hub",
                    {ErrorCode::kInvalidArgument,
                     "--listen " + arguments.listen +
                         ": open to the network only with --keys DIR (longhaul keys init makes "
                         "them), or with --insecure"},
                    kExitWrongUse);
  const Result<Seconds> status_every = parse_duration(arguments.status_every);
  if (!status_every.ok())
    return complain("hub", Error(status_every.error()).within("--status-every"), kExitWrongUse);
  Result<HubOptions> setup = hub_options(arguments, *task);
  if (!setup.ok()) return complain("hub", setup.error(), kExitWrongUse);
  GrpcServer::Options server_options{.address = arguments.listen};
  if (!arguments.keys.empty()) {
    const Result<TlsKeys> keys = access::load_hub_keys(arguments.keys, access::wall_now());
    if (!keys.ok()) return complain("hub", keys.error(), kExitFailed);
    server_options.tls = *keys;
    setup->admit = admission_by(arguments.keys);
  }
  const std::size_t start_with = setup->start_with;
  const std::uint64_t steps = setup->training.steps;
  const auto directory = own_directory(arguments.directory);
  if (!directory.ok()) return complain("hub", directory.error(), kExitFailed);
  notice_interrupts();
  keep_freed_memory();
  raise_descriptor_limit();
  const Clock clock;
  const Log log = Log(log_level(arguments.log)).named("hub");
  if (arguments.directory.empty())
    log.warning("no --dir: if this hub crashes or is stopped, the run is lost");
  const auto lines = arguments.json ? std::make_shared<Lines>(kMostLines) : nullptr;
  Result<std::unique_ptr<Hub>> hub = Hub::start(
      std::move(setup).value(), clock, log,
      {.threads = all_cores(), .watcher = HubWatcher(lines, arguments.tells_rounds, log)});
  if (!hub.ok()) return complain("hub", hub.error(), kExitFailed);
  const Result<std::unique_ptr<GrpcServer>> server = GrpcServer::start(server_options, **hub);
  if (!server.ok()) return complain("hub", server.error(), kExitFailed);
  if (!arguments.directory.empty()) {
    const Status kept = write_task(arguments.directory, *task);
    if (!kept.ok()) return complain("hub", kept.error(), kExitFailed);
  }
  const std::string at = address->host + ':' + std::to_string((*server)->port());
  if (arguments.json) {
    print_event("listening", {{"address", at}, {"port", (*server)->port()}});
  } else {
    log.info("listening on " + at);
    if (!(*hub)->status().is_started)
      log.info("starts when " + std::to_string(start_with) +
               (start_with == 1 ? " replica is here" : " replicas are here"));
  }
  const HubService::Options options{
      .task = *task, .steps = steps, .directory = arguments.directory, .again = again(arguments)};
  const Result<bool> served =
      HubService(**hub, options, lines, StatusPace(*status_every), log).run();
  if (!served.ok()) return complain("hub", served.error(), kExitFailed);
  return *served ? kExitDone : kExitInterrupted;
}

}  // namespace

void add_hub(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<HubCommandOptions>();  // shared with the callback
  CLI::App* hub = program.add_subcommand("hub", "Serve a run to the replicas that dial in");
  hub->add_option("scenario", arguments->task.request.scenario,
                  "Name of a built-in scenario, or a file that ends in .toml; not needed if --dir\n"
                  "holds a run, which goes on");
  hub->add_option("--listen", arguments->listen, "HOST:PORT; port 0: the system chooses")
      ->capture_default_str();
  hub->add_option("--dir", arguments->directory,
                  "Directory of the journal: a hub that was stopped or killed goes on from it");
  hub->add_flag("--accept-loss", arguments->accepts_loss,
                "Go on although --dir is damaged and rounds are lost, from the last good state")
      ->needs(hub->get_option("--dir"));
  hub->add_option("--keys", arguments->keys, "Directory that `longhaul keys init` has made");
  hub->add_flag("--insecure", arguments->is_insecure,
                "Let anyone in who reaches the port, without TLS");
  hub->add_option("--recipe", arguments->task.request.recipe, "One recipe (default: auto)");
  hub->add_option("--seed", arguments->task.seed, "Seed of the run (default: 1)")
      ->check(whole_number());
  hub->add_option("--set", arguments->task.request.settings,
                  "Override a key of the scenario: table.key=value; repeatable")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  hub->add_option("--start-with", arguments->start_with,
                  "Replicas that must be there before the first step (default: all)")
      ->check(whole_number(1));
  hub->add_option("--patience", arguments->patience,
                  "How long to wait at the end for replicas that are away")
      ->capture_default_str();
  hub->add_option("--most-params", arguments->most_params,
                  "Largest model that it takes, such as 1B (default: what fits into memory)");
  add_rate(*hub, arguments->rate,
           "Send means to each replica at this rate at most, such as 50mbit");
  hub->add_option(
         "--least", arguments->least,
         "Minimum number of connected replicas; below it, rounds wait. With all replicas, a run "
         "that is stopped and resumed is bit-identical to an uninterrupted one (fixed plans only)")
      ->capture_default_str()
      ->check(whole_number(1));
  hub->add_flag("--print-config", arguments->prints_config,
                "Do not run: print the scenario with all settings applied, as a scenario file");
  hub->add_flag(
      "--no-evaluation", arguments->is_scored_elsewhere,
      "No replica scores the shared model on held-out data; the run ends after its steps");
  CLI::Option* json =
      hub->add_flag("--json", arguments->json, "Events, one JSON object per line (docs/events.md)");
  hub->add_flag("--rounds", arguments->tells_rounds,
                "With --json: an event for each round that closes, too")
      ->needs(json);
  hub->add_option("--status-every", arguments->status_every,
                  "With --json: longest time between two `status` events")
      ->capture_default_str()
      ->needs(json);
  add_log_options(*hub, arguments->log);
  hub->footer(
      "Replicas join with `longhaul train`. The run ends at the scenario's target, or after its\n"
      "steps (--set train.stop=steps: only then). Ctrl-C lets everyone finish the step they are "
      "in\n"
      "and write a checkpoint; a second one ends at once. With --dir the run can go on later.\n\n"
      "Exit codes: 0 the run is done, 1 it failed, 2 wrong use, 130 stopped by Ctrl-C.\n\n"
      "Examples:\n"
      "  longhaul hub fashion-wan\n"
      "  longhaul hub fashion-wan --listen 0.0.0.0:7070 --keys keys --dir run1\n"
      "  longhaul hub --dir run1 --listen 0.0.0.0:7070 --keys keys    (goes on)");
  hub->callback([=, &run] { run = [=] { return run_hub(*arguments); }; });
}

}  // namespace longhaul::apps
