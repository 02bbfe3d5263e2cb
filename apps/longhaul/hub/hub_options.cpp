#include "apps/longhaul/hub/hub_options.h"

#include <unistd.h>

#include <utility>

#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/list_option.h"
#include "apps/longhaul/command/option_checks.h"
#include "apps/longhaul/command/rate_option.h"

namespace longhaul::apps {
namespace {

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

Result<HubOptions> options_of_run(const HubCommandOptions& arguments, const v1::Task& task) {
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

// Open to the network only for those who are invited, or by an explicit wish.
Status check_listening(const HubCommandOptions& arguments) {
  Result<access::Address> address = listening_address(arguments.listen);
  if (!address.ok()) return std::move(address).error().within("--listen");
  if (!arguments.keys.empty() && arguments.is_insecure)
    return Error{ErrorCode::kInvalidArgument, "--insecure: not together with --keys"};
  if (arguments.keys.empty() && !arguments.is_insecure && !access::is_loopback(*address))
    return Error{ErrorCode::kInvalidArgument,
                 "--listen " + arguments.listen +
                     ": open to the network only with --keys DIR (longhaul keys init makes "
                     "them), or with --insecure"};
  return Done{};
}

void add_run_options(CLI::App& hub, HubCommandOptions& arguments) {
  hub.add_option("scenario", arguments.task.scenario,
                 "Name of a built-in scenario, or a file that ends in .toml; not needed if --dir\n"
                 "holds a run, which goes on");
  hub.add_option("--listen", arguments.listen, "HOST:PORT; port 0: the system chooses")
      ->capture_default_str();
  hub.add_option("--dir", arguments.directory,
                 "Directory of the journal: a hub that was stopped or killed goes on from it");
  hub.add_flag("--accept-loss", arguments.accepts_loss,
               "Go on although --dir is damaged and rounds are lost, from the last good state")
      ->needs(hub.get_option("--dir"));
  hub.add_option("--keys", arguments.keys, "Directory that `longhaul keys init` has made");
  hub.add_flag("--insecure", arguments.is_insecure,
               "Let anyone in who reaches the port, without TLS");
  hub.add_option("--recipe", arguments.task.recipe, "One recipe (default: auto)");
  hub.add_option("--seed", arguments.seed, "Seed of the run (default: 1)")->check(whole_number());
  add_settings(hub, arguments.task.settings);
}

void add_service_options(CLI::App& hub, HubCommandOptions& arguments) {
  hub.add_option("--start-with", arguments.start_with,
                 "Replicas that must be there before the first step (default: all)")
      ->check(whole_number(1));
  hub.add_option("--patience", arguments.patience,
                 "How long to wait at the end for replicas that are away")
      ->capture_default_str();
  hub.add_option("--most-params", arguments.most_params,
                 "Largest model that it takes, such as 1B (default: what fits into memory)");
  add_rate(hub, arguments.rate, "Send means to each replica at this rate at most, such as 50mbit");
  hub.add_option(
         "--least", arguments.least,
         "Minimum number of connected replicas; below it, rounds wait. With all replicas, a run "
         "that is stopped and resumed is bit-identical to an uninterrupted one (fixed plans only)")
      ->capture_default_str()
      ->check(whole_number(1));
  hub.add_flag("--print-config", arguments.prints_config,
               "Do not run: print the scenario with all settings applied, as a scenario file");
  hub.add_flag("--no-evaluation", arguments.is_scored_elsewhere,
               "No replica scores the shared model on held-out data; the run ends after its steps");
  CLI::Option* json =
      hub.add_flag("--json", arguments.json, "Events, one JSON object per line (docs/events.md)");
  hub.add_flag("--rounds", arguments.tells_rounds,
               "With --json: an event for each round that closes, too")
      ->needs(json);
  hub.add_option("--status-every", arguments.status_every,
                 "With --json: longest time between two `status` events")
      ->capture_default_str()
      ->needs(json);
  add_log_options(hub, arguments.log);
}

}  // namespace

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

Result<HubOptions> hub_options(const HubCommandOptions& arguments, const v1::Task& task) {
  LONGHAUL_TRY(check_listening(arguments));
  Result<Seconds> status_every = parse_duration(arguments.status_every);
  if (!status_every.ok()) return std::move(status_every).error().within("--status-every");
  return options_of_run(arguments, task);
}

std::string command_to_go_on(const HubCommandOptions& arguments) {
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
  if (arguments.is_scored_elsewhere) command += " --no-evaluation";
  return command;
}

CLI::App* add_hub_options(CLI::App& program, HubCommandOptions& arguments) {
  CLI::App* hub = program.add_subcommand("hub", "Serve a run to the replicas that dial in");
  add_run_options(*hub, arguments);
  add_service_options(*hub, arguments);
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
  return hub;
}

}  // namespace longhaul::apps
