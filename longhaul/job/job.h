// From a scenario to what an engine needs: the same for the lab, the hub and its replicas.
#pragma once

#include <cstdint>

#include "longhaul/base/result.h"
#include "longhaul/job/recipe_choice.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/engine.h"

namespace longhaul {

// One recipe of a scenario with one seed.
struct Job {
  Scenario scenario;
  ChosenRecipe recipe;
  std::string recipe_text;
  std::uint64_t seed = 1;
};

// `layers` may be empty where nothing is encoded.
Result<EngineOptions> engine_options(const Job& job, const LayerTable& layers);

}  // namespace longhaul
