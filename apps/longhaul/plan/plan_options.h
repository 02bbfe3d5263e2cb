// The options of `plan`: as written, and as parsed.
#pragma once

#include <string>

#include "longhaul/base/result.h"
#include "longhaul/plan/conditions.h"
#include "longhaul/plan/layer_profile.h"
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
  std::string recipe;  // empty: auto, or dreamddp for a profile
  std::string codec;
  std::string least_ratio = "0.0003";
  std::string most_ratio = "1";
  bool map = false;
  std::string out;
  bool is_forced = false;
  std::string profile;
  std::size_t period = 0;  // 0: chosen
  std::string layers;      // whole or cut; empty: by the number of layers
  bool is_one_way = false;
  bool is_contiguous = false;
  bool json = false;
};

// The options of `plan`, read and checked.
struct PlanOptions {
  std::size_t elements = 0;
  std::size_t replicas = 0;
  ReplicaConditions link;  // of every replica
  Recipe recipe;
  RatioRange limits;
  // With a profile: the parts that travel on their own, one for a recipe that sends the whole
  // model. recipe.plan.period_steps is 0 where the period is to be chosen.
  LayerProfile parts;
  bool is_one_way = false;

  [[nodiscard]] RoundSizes sizes() const {
    return {recipe.codec, elements, replicas, limits, recipe.way_down()};
  }
};

// A warning about a suspiciously small model, such as --params 124; empty: none.
std::string doubt_about_params(const std::string& written, std::uint64_t params);

// A profile of at least this many layers is planned in the parts of a run. In an even model with
// fewer, each layer is above the size at which a run cuts layers.
inline constexpr std::size_t kLeastLayersInParts = 16;

// An error is one line that names the option.
Result<PlanOptions> plan_request(const PlanCommandOptions& arguments);

}  // namespace longhaul::apps
