// The settings of an engine, which are those of its merge rule too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "longhaul/codec/layer_table.h"
#include "longhaul/plan/layer_profile.h"
#include "longhaul/sync/lr_schedule.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/part.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {

// The one who moves the parameters between rounds.
enum class LocalStep : std::uint8_t {
  kOurs,     // the engine's optimizer
  kCallers,  // the caller: what the parameters have moved is the update
};

// Everything that an engine must know beside parameters and exchange.
struct EngineOptions {
  Recipe recipe;
  LocalStep local_step = LocalStep::kOurs;
  OptimizerOptions optimizer;
  LrSchedule lr;
  double clip = 0;         // largest norm of a gradient; 0: none. See Engine::ready()
  std::uint64_t seed = 1;  // equal on all replicas: of codecs that draw at random
  LayerTable layers;
  // For recipes by layer: the time that each layer of `layers` takes, as a share of a step. Without
  // layers, or if they do not fit: shares by size.
  LayerProfile times{};
  bool computes = true;  // false: nobody takes gradients here, so it need not stand anywhere
  // In this step everything that a replica has not told goes into a round, uncompressed. After its
  // merge the shared model is the mean of all replicas. For `late`, and a model in one piece unless
  // means are formed in place.
  std::optional<std::uint64_t> final_average{};
  // Means are formed where the values are, by an exchange that can: of gradients, or with local
  // steps of the parameters themselves. Nothing is kept for it: no residual, and no shared model
  // beside the parameters, which differ between replicas until a part has its round. check_plan()
  // says what it takes.
  bool averages_in_place = false;
  std::size_t slot = 0;      // of this replica: a plan may have a keep ratio for each
  std::size_t replicas = 0;  // of the run; 0: not known
};

// The parts of a model with so many elements, under the recipe's plan.
std::vector<Part> parts_of(const EngineOptions& options, std::size_t elements);

// The parts of a recipe that goes by layer, or may: their sizes and their shares of a step's time.
// Without parts: the recipe is another, or the layers are not known yet.
LayerProfile part_times(const EngineOptions& options);

}  // namespace longhaul
