// How fast torch itself finds the largest magnitudes: the yardstick of `longhaul bench codec`.
#pragma once

#include <cstddef>
#include <vector>

namespace longhaul::trainer {

// Seconds of each repetition of abs, topk and gather on one thread, on fresh normal values every
// time.
std::vector<double> torch_top_k_seconds(std::size_t elements, std::size_t keep,
                                        std::size_t repetitions);

}  // namespace longhaul::trainer
