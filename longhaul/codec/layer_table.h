// Which part of an update belongs to which layer of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace longhaul {

struct Layer {
  std::string name;
  std::size_t offset = 0;           // in elements, from the start of the update
  std::size_t count = 0;            // elements
  std::vector<std::int64_t> shape;  // empty: a plain vector

  bool operator==(const Layer&) const = default;
};

// Layers in backward order: the order in which gradients become ready.
using LayerTable = std::vector<Layer>;

}  // namespace longhaul
