#include "longhaul/sync/part.h"

#include <algorithm>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

// The cut that is nearest to `wanted`; that itself, if there is none between `least` and `most`.
std::size_t nearest_cut(const std::vector<std::size_t>& cuts, std::size_t wanted, std::size_t least,
                        std::size_t most) {
  const auto distance = [&](std::size_t cut) { return cut > wanted ? cut - wanted : wanted - cut; };
  std::size_t best = wanted;
  bool is_found = false;
  for (const std::size_t cut : cuts) {
    if (cut < least || cut > most || (is_found && distance(cut) >= distance(best))) continue;
    best = cut;
    is_found = true;
  }
  return best;
}

}  // namespace

std::vector<Part> split_into_parts(const LayerTable& layers, std::size_t elements,
                                   std::size_t count) {
  LONGHAUL_CHECK(count >= 1 && count <= std::max<std::size_t>(1, elements));
  std::vector<std::size_t> cuts;
  for (const Layer& layer : layers) cuts.push_back(layer.offset);
  std::vector<Part> parts;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    // No further than half a part from an even cut: no part is empty.
    const std::size_t even = elements * i / count;
    const std::size_t slack = elements / count / 2;
    const std::size_t end =
        i == count ? elements
                   : nearest_cut(cuts, even, std::max(first + 1, even - slack), even + slack);
    parts.push_back({.first = first, .count = end - first});
    first = end;
  }
  return parts;
}

LayerTable layers_of(const Part& part, const LayerTable& layers) {
  LayerTable own;
  const std::size_t part_end = part.first + part.count;
  for (const Layer& layer : layers) {
    const std::size_t first = std::max(layer.offset, part.first);
    const std::size_t end = std::min(layer.offset + layer.count, part_end);
    if (first >= end) continue;
    Layer& kept = own.emplace_back(layer);
    if (end - first < layer.count) kept.shape.clear();
    kept.offset = first - part.first;
    kept.count = end - first;
  }
  return own;
}

}  // namespace longhaul
