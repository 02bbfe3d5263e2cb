// The options of `lab`: `longhaul` parses them to help and to refuse wrong use, `longhaul-torch` to
// run.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "apps/longhaul/command/log_options.h"
#include "longhaul/base/result.h"
#include "longhaul/lab/study.h"

namespace longhaul::apps {

// As written on the command line.
struct LabCommandOptions {
  std::string scenario;
  std::string recipes;
  std::string seeds;
  std::vector<std::string> settings;
  std::vector<std::string> grid;
  std::size_t threads = 0;           // 0: all cores
  std::string out;                   // empty: ./longhaul-results/SCENARIO
  std::string replay;                // a directory of results; empty: train
  std::size_t checkpoint_every = 0;  // steps; 0: only when interrupted
  bool resume = false;
  bool oracle = false;
  bool print_config = false;
  bool json = false;
  LogOptions log;
};

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_lab_options(CLI::App& program, LabCommandOptions& arguments);

// Equal for calls whose runs can be compared: the text of the scenario, what is set over it, and
// the traces that it names.
std::string study_digest(const lab::StudyOptions& request, const Scenario& scenario);

// Errors name the option.
Result<lab::StudyOptions> study_request(const LabCommandOptions& arguments);

}  // namespace longhaul::apps
