// Parts of the model that are exchanged in rounds of their own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "longhaul/codec/layer_table.h"

namespace longhaul {

// Consecutive elements of the model that are exchanged together.
struct Part {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] std::span<float> of(std::span<float> all) const {
    return all.subspan(first, count);
  }
  [[nodiscard]] std::span<const float> of(std::span<const float> all) const {
    return all.subspan(first, count);
  }
};

// `count` parts of about the same size, cut between layers where there are enough of them.
std::vector<Part> split_into_parts(const LayerTable& layers, std::size_t elements,
                                   std::size_t count);

// The layers of a part, from its own start on; those that it cuts through are plain vectors.
LayerTable layers_of(const Part& part, const LayerTable& layers);

}  // namespace longhaul
