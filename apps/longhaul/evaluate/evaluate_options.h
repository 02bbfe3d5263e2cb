// The options of `evaluate`: `longhaul` parses them to help and to refuse wrong use,
// `longhaul-torch` to score.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"

namespace longhaul::apps {

struct EvaluateCommandOptions {
  std::string model;
  std::string scenario;
  std::vector<std::string> settings;
  std::string data;
  bool json = false;
};

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_evaluate_options(CLI::App& program, EvaluateCommandOptions& arguments);

// Reads the scenario that these arguments name. An error is wrong use.
Result<Scenario> scenario_to_evaluate(const EvaluateCommandOptions& arguments);

}  // namespace longhaul::apps
