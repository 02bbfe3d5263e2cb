#include "longhaul/sync/engine_options.h"

#include <cmath>

#include "longhaul/base/check.h"
#include "longhaul/sync/layer_times.h"

namespace longhaul {

LayerProfile part_times(const EngineOptions& options) {
  const Recipe& recipe = options.recipe;
  const bool may_be =
      recipe.may_go_by_layer && recipe.local.fragments == 1 && !options.final_average;
  if ((!recipe.is_by_layer && !may_be) || options.layers.empty()) return {};
  Result<LayerProfile> times = layer_times(options.layers, options.times);
  return in_parts(times.ok() ? *times : layer_times(options.layers, {}).value());
}

std::vector<Part> parts_of(const EngineOptions& options, std::size_t elements) {
  const bool is_by_layer = options.recipe.is_by_layer_with(options.recipe.plan);
  const LayerProfile by_layer = is_by_layer ? part_times(options) : LayerProfile{};
  if (by_layer.layers.empty())
    return split_into_parts(options.layers, elements,
                            static_cast<std::size_t>(options.recipe.local.fragments));
  std::vector<Part> parts;
  std::size_t first = 0;
  for (const LayerProfile::Layer& layer : by_layer.layers) {
    const auto count = static_cast<std::size_t>(std::llround(layer.bytes / sizeof(float)));
    parts.push_back({.first = first, .count = count});
    first += count;
  }
  LONGHAUL_CHECK_EQ(first, elements);
  return parts;
}

}  // namespace longhaul
