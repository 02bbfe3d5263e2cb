// Draws the batches of one replica: shuffled passes over its share, without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/random.h"

namespace longhaul::trainer {

class BatchSampler {
 public:
  // `share` is not empty. The order is a function of share and random state alone.
  BatchSampler(std::vector<std::uint32_t> share, std::size_t batch, Random random);

  // The next `batch` samples. A pass uses every sample once; a batch may reach into the next pass.
  // Valid until the next call.
  std::span<const std::uint32_t> next();

  // As if so many batches had been drawn.
  void skip(std::uint64_t batches);

 private:
  std::vector<std::uint32_t> share_;
  std::vector<std::uint32_t> batch_;
  std::size_t used_;
  Random random_;
};

}  // namespace longhaul::trainer
