// The options of `plan`: as written, and as parsed.
#pragma once

#include <string>

#include "longhaul/base/result.h"
#include "longhaul/plan/conditions.h"
#include "longhaul/plan/round_sizes.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::apps {

// As written on the command line.
struct PlanCommandOptions {
  std::string params;
  std::string step_time;
  std::string bandwidth;
  std::string down;
  std::string latency;
  std::size_t replicas = 4;
  std::string recipe = "auto";
  std::string codec;
  std::string least_ratio = "0.0003";
  std::string most_ratio = "1";
  bool map = false;
  std::string out;
  bool is_forced = false;
  bool json = false;
};

// The options of `plan`, read and checked.
struct PlanOptions {
  std::size_t elements = 0;
  std::size_t replicas = 0;
  ReplicaConditions link;  // of every replica
  Recipe recipe;
  RatioRange limits;

  [[nodiscard]] RoundSizes sizes() const {
    return {recipe.codec, elements, replicas, limits, recipe.way_down()};
  }
};

// A warning about a suspiciously small model, such as --params 124; empty: none.
std::string doubt_about_params(const std::string& written, std::uint64_t params);

// An error is one line that names the option.
Result<PlanOptions> plan_request(const PlanCommandOptions& arguments);

}  // namespace longhaul::apps
