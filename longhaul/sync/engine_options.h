// The settings of an engine, which are those of its merge rule too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "longhaul/codec/layer_table.h"
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
  bool computes = true;  // false: nobody takes gradients here, so it need not stand anywhere
  // In this step everything that a replica has not told goes into a round, uncompressed: after its
  // merge the shared model is the mean of all replicas. For `late`, and a model in one piece.
  std::optional<std::uint64_t> final_average{};
  std::size_t slot = 0;      // of this replica: a plan may have a keep ratio for each
  std::size_t replicas = 0;  // of the run; 0: not known
};

// The parts of a model with so many elements.
inline std::vector<Part> parts_of(const EngineOptions& options, std::size_t elements) {
  return split_into_parts(options.layers, elements,
                          static_cast<std::size_t>(options.recipe.local.fragments));
}

}  // namespace longhaul
