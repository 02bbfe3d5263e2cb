// From a scenario to what an engine needs: the same for the lab, the hub and its replicas.
#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/sync/engine.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {

// One recipe of a scenario with one seed.
struct Job {
  Scenario scenario;
  std::string recipe_text;
  Recipe recipe{};  // its row, with the scenario's settings of it and then the text's put over it
  double lr = 0;
  std::uint64_t seed = 1;
};

// An error where the recipe is none, or its settings do not fit together.
Result<Job> make_job(const Scenario& scenario, const std::string& recipe, std::uint64_t seed);

// `layers` may be empty where nothing is encoded.
Result<EngineOptions> engine_options(const Job& job, const LayerTable& layers);

}  // namespace longhaul
