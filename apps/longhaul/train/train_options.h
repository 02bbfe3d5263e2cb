// The options of `train`: `longhaul` parses them to help and to refuse wrong use, `longhaul-torch`
// to train.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/longhaul/command/log_options.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/base/units.h"
#include "longhaul/session/hub_access.h"
#include "longhaul/session/train_session.h"

namespace longhaul::apps {

// As written on the command line.
struct TrainCommandOptions {
  std::string collective;  // a scenario; empty: a hub has it
  std::string recipe;
  std::vector<std::string> settings;
  std::optional<std::uint64_t> seed;
  std::string rendezvous;
  bool all_reduce = false;
  std::string invite;
  std::string hub;
  std::string name;
  std::optional<std::uint32_t> slot;
  std::string data;
  std::string save;
  bool is_forced = false;        // --save replaces files of others
  std::string stamps;            // a directory for copies of the shared model to be evaluated
  std::string checkpoint;        // a directory, or a file
  std::string checkpoint_every;  // steps, or a duration
  bool resume = false;
  std::size_t threads = 0;        // 0: as the checkpoint has it, else all cores
  std::optional<Bandwidth> rate;  // of bulk data to the hub, at most
  std::string book;               // a file, for tests
  bool is_paced = false;
  bool evaluate = false;
  bool json = false;
  LogOptions log;
  std::string wait;                // for the hub, a duration; empty: for ever
  std::vector<std::string> words;  // all of the above, as written
};

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_train_options(CLI::App& program, TrainCommandOptions& arguments);

// Whether --save can write where it is to; nothing is touched.
Status check_save(const TrainCommandOptions& arguments);

// For a hub that does not answer; none: for ever.
Result<std::optional<Seconds>> longest_wait(const TrainCommandOptions& arguments);

// The same command once more, so that it goes on from its checkpoint.
std::string command_to_resume(const TrainCommandOptions& arguments);

Result<CheckpointOptions> checkpoint_options(const TrainCommandOptions& arguments,
                                             const std::string& name);

}  // namespace longhaul::apps
