// Layer profiles of well-known models, for plans without the model at hand. Parameters and
// operations follow from the numbers of each architecture; times are operations at a fixed rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/plan/layer_profile.h"

namespace longhaul {

// The operations per second of every built-in profile: a GPU that sustains 20 TFLOP/s. Only
// convolutions, matrix products and attention scores count, a multiplication and an addition as
// two. For another machine measure the model there (`longhaul profile`).
inline constexpr double kProfileOperationsPerSecond = 20e12;

// resnet-18, resnet-50:   64 images of 224 × 224
// gpt2-124m, llama-175m:  8 sequences of 1024 tokens
// llama-1.3b:             4 sequences of 2048 tokens
std::vector<std::string> builtin_profile_names();

// The error suggests a name, or lists them all.
Result<LayerProfile> builtin_profile(std::string_view name);

}  // namespace longhaul
