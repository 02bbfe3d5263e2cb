// How long each layer of a model takes, and how layers become parts that travel on their own.
#pragma once

#include "longhaul/base/result.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/plan/layer_profile.h"

namespace longhaul {

// The layers of a model, in backward order, with the times that `times` has for them. A layer is
// all tensors whose names are equal up to the last dot. The names must be those of `times`, in the
// same order. Without times a layer takes time in proportion to its size, a third of it forward.
Result<LayerProfile> layer_times(const LayerTable& layers, const LayerProfile& times);

// Layers as parts. Neighbours below 1/64 of the model travel together, so that the fixed cost of a
// round is paid once. Layers above 1/16 are cut into pieces, so that a step can carry some of them.
LayerProfile in_parts(const LayerProfile& layers);

}  // namespace longhaul
