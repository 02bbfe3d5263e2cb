// The options of `profile`: `longhaul` parses them to help and to refuse wrong use,
// `longhaul-torch` to measure.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"

namespace longhaul::apps {

// In every profile that Longhaul writes.
inline constexpr std::string_view kProfileMark = "\"overhead_share\"";

// As written on the command line.
struct ProfileCommandOptions {
  std::string scenario;
  std::vector<std::string> settings;
  std::string out;  // empty: no file
  std::size_t steps = 10;
  std::size_t threads = 0;  // 0: all cores
  bool is_forced = false;
  bool json = false;
};

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_profile_options(CLI::App& program, ProfileCommandOptions& arguments);

// Reads the scenario that these arguments name. An error is wrong use.
Result<Scenario> scenario_to_profile(const ProfileCommandOptions& arguments);
// Whether --out may be written. To be asked before long work.
Status check_profile_output(const ProfileCommandOptions& arguments);

}  // namespace longhaul::apps
