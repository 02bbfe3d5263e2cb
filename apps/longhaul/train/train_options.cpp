#include "apps/longhaul/train/train_options.h"

#include "apps/longhaul/command/list_option.h"
#include "apps/longhaul/command/option_checks.h"
#include "apps/longhaul/command/rate_option.h"
#include "longhaul/base/file.h"
#include "longhaul/base/units.h"

namespace longhaul::apps {
namespace {

constexpr const char* kDefaultDirectory = "longhaul-checkpoints";
constexpr const char* kExtension = ".safetensors";

void add_collective_options(CLI::App& train, TrainCommandOptions& arguments) {
  CLI::Option* collective =
      train.add_option("--collective", arguments.collective,
                       "Train a scenario without a hub: this process is a rank that a launcher "
                       "started (torchrun, srun, mpirun)");
  for (const char* other : {"--invite", "--hub", "--name", "--slot", "--stamps", "--rate", "--book",
                            "--wait", "--evaluate"})
    collective->excludes(train.get_option(other));
  train.add_option("--recipe", arguments.recipe, "With --collective: the recipe (default: auto)")
      ->needs(collective);
  add_settings(train, arguments.settings,
               "With --collective: override a key of the scenario: table.key=value; repeatable")
      ->needs(collective);
  train
      .add_option("--seed", arguments.seed,
                  "With --collective: the seed of the run (default: the scenario's)")
      ->check(whole_number())
      ->needs(collective);
  train
      .add_option("--rendezvous", arguments.rendezvous,
                  "With --collective: HOST:PORT of rank 0, where MASTER_ADDR and MASTER_PORT do "
                  "not say it")
      ->needs(collective);
  train
      .add_flag("--all-reduce", arguments.all_reduce,
                "With --collective: average dense updates in place by all-reduce, in place of "
                "gathering them; the bits are those of the process group")
      ->needs(collective);
}

void add_place_options(CLI::App& train, TrainCommandOptions& arguments) {
  train.add_option("--invite", arguments.invite, "File that `longhaul keys invite` has made");
  train.add_option("--hub", arguments.hub, "HOST:PORT of a hub without TLS, in place of an invite");
  train.add_option("--name", arguments.name, "Name of this replica, with --hub");
  train
      .add_option("--slot", arguments.slot,
                  "Which replica of the scenario to be, from 0 (default: the hub chooses)")
      ->check(whole_number());
  train.add_option("--data", arguments.data, "Where the data lies, in place of the scenario's");
}

void add_file_options(CLI::App& train, TrainCommandOptions& arguments) {
  CLI::Option* save =
      train.add_option("--save", arguments.save, "Write the model here at the end (safetensors)");
  train
      .add_flag("--force", arguments.is_forced,
                "With --save: replace a file that Longhaul did not write, too")
      ->needs(save);
  train.add_option("--checkpoint", arguments.checkpoint,
                   "Write checkpoints: into this directory, or to this file if it ends in "
                   ".safetensors");
  train.add_option("--checkpoint-every", arguments.checkpoint_every,
                   "Steps (100) or time (30s) between checkpoints; the default is 30s");
  train.add_flag("--resume", arguments.resume,
                 "Go on from the checkpoint, if there is one (in ./longhaul-checkpoints, unless "
                 "--checkpoint says otherwise)");
}

void add_course_options(CLI::App& train, TrainCommandOptions& arguments) {
  train.add_option("--wait", arguments.wait,
                   "How long to wait for a hub that does not answer, such as 10min; 0s: not at "
                   "all (default: until Ctrl-C)");
  train
      .add_option("--threads", arguments.threads,
                  "Threads of torch and codecs (default: those of the checkpoint that it goes on "
                  "from, else all cores, or 1 if the hub is on this machine)")
      ->check(CLI::Range(1, 256));
  train.add_flag("--paced", arguments.is_paced,
                 "Stand in for another machine: no step is shorter than the scenario's step_time");
  train.add_option("--stamps", arguments.stamps,
                   "Directory for copies of the shared model, one per evaluation");
  add_rate(train, arguments.rate, "Send updates at this rate at most, such as 20mbit");
  train.add_option("--book", arguments.book,
                   "Write down what is submitted, merged and returned, for tests/e2e/books.py");
  train
      .add_flag("--evaluate", arguments.evaluate,
                "Do not train: score the copies named on standard input, as STEP TIME FILE, and "
                "remove them")
      ->group("");  // of rehearsals
}

constexpr const char* kTrainFooter =
    "Model, data and recipe come from the hub, or with --collective from a scenario. Ctrl-C\n"
    "leaves the run in order; a second one ends at once. With --checkpoint or --resume the last\n"
    "thing it does is to write a checkpoint, also if the hub is stopped before the last step. A\n"
    "collective ends with any of its ranks; --resume goes on from its last checkpoint.\n\n"
    "Exit codes: 0 the run is done, 1 it failed, 2 wrong use, 75 the hub was stopped (start it\n"
    "again with --resume), 130 stopped by Ctrl-C.\n\n"
    "Examples:\n"
    "  longhaul train --invite berlin.invite --resume\n"
    "  longhaul train --hub 127.0.0.1:7070 --name a\n"
    "  srun longhaul train --collective fashion-wan --recipe auto --checkpoint /shared/run1";

}  // namespace

CLI::App* add_train_options(CLI::App& program, TrainCommandOptions& arguments) {
  CLI::App* train = program.add_subcommand("train", "Join a hub as a replica and train");
  add_place_options(*train, arguments);
  add_file_options(*train, arguments);
  add_course_options(*train, arguments);
  add_collective_options(*train, arguments);
  train->add_flag("--json", arguments.json, "Events, one JSON object per line (docs/events.md)");
  add_log_options(*train, arguments.log);
  train->footer(kTrainFooter);
  return train;
}

Status check_save(const TrainCommandOptions& arguments) {
  if (arguments.save.empty()) return Done{};
  if (is_standard_output(arguments.save) && arguments.json)
    return Error{ErrorCode::kInvalidArgument, "--save: standard output is for events with --json"};
  const auto target = output_target(arguments.save, kStateMark, arguments.is_forced);
  if (!target.ok()) return Error(target.error()).within("--save");
  return Done{};
}

Result<std::optional<Seconds>> longest_wait(const TrainCommandOptions& arguments) {
  if (arguments.wait.empty()) return std::optional<Seconds>();
  Result<Seconds> wait = parse_duration(arguments.wait);
  if (!wait.ok()) return std::move(wait).error().within("--wait");
  return std::optional(*wait);
}

std::string command_to_resume(const TrainCommandOptions& arguments) {
  std::string command = "longhaul";
  for (const std::string& word : arguments.words) command += ' ' + word;
  return arguments.resume ? command : command + " --resume";
}

Result<CheckpointOptions> checkpoint_options(const TrainCommandOptions& arguments,
                                             const std::string& name) {
  CheckpointOptions options;
  const std::string& every = arguments.checkpoint_every;
  if (arguments.checkpoint.empty() && every.empty() && !arguments.resume) return options;
  options.file = arguments.checkpoint.empty() ? kDefaultDirectory : arguments.checkpoint;
  if (options.file.extension() != kExtension) options.file /= name + kExtension;
  if (every.empty()) return options;
  const bool is_unclear = every.ends_with('m');  // minutes or millions
  const Result<std::uint64_t> steps = parse_count(every);
  if (steps.ok() && *steps > 0 && !is_unclear) {
    options.steps = *steps;
    return options;
  }
  const Result<Seconds> time = parse_duration(every);
  if (!time.ok() || time->count() <= 0)
    return Error{
        ErrorCode::kInvalidArgument,
        "--checkpoint-every: expected steps (100) or a time (30s, 5min), got '" + every + "'"};
  options.time = *time;
  return options;
}

}  // namespace longhaul::apps
