// Finds the moment before torch first reads a parameter. Includes torch: only for .cpp files of the
// trainer and their tests.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <functional>

#include "longhaul/codec/layer_table.h"

namespace longhaul::trainer {

// Runs `forward` on this thread and calls before_use(first, count) with the elements of each layer.
// The call comes just before the first operation that gets a tensor of the layer, or a view of one.
// Layers lie one after the other in the memory of `values`. A layer is told of at most once, and
// not at all where no operation gets it. before_use may write to its elements. Its first exception
// leaves this function when `forward` has ended, and it is not called again.
void watch_uses(const LayerTable& layers, const torch::Tensor& values,
                const std::function<void()>& forward,
                const std::function<void(std::size_t first, std::size_t count)>& before_use);

}  // namespace longhaul::trainer
