// The options of `hub`, and the hub that they ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/longhaul/command/log_options.h"
#include "longhaul/access/names.h"
#include "longhaul/base/result.h"
#include "longhaul/base/units.h"
#include "longhaul/hub/hub.h"
#include "longhaul/job/task.h"

namespace longhaul::apps {

// As written on the command line.
struct HubCommandOptions {
  TaskOptions task;  // its scenario may be empty
  std::optional<std::uint64_t> seed;
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

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_hub_options(CLI::App& program, HubCommandOptions& arguments);

// An address to listen on may leave the port to the system.
Result<access::Address> listening_address(const std::string& text);

// The hub for `task`. Errors are wrong use, and name the option.
Result<HubOptions> hub_options(const HubCommandOptions& arguments, const v1::Task& task);

// The command that goes on with this run: the task is in the directory, all else is not. Empty:
// none does.
std::string command_to_go_on(const HubCommandOptions& arguments);

inline Log hub_log(const HubCommandOptions& arguments) {
  return Log(log_level(arguments.log)).named("hub");
}

}  // namespace longhaul::apps
