// The learning rate of each step.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longhaul {

// How a learning rate goes on after its peak.
enum class LrShape : std::uint8_t { kConstant, kCosine };

struct LrSchedule {
  double peak = 0.05;
  LrShape shape = LrShape::kConstant;
  std::size_t warmup_steps = 0;  // rises linearly over them
  std::size_t steps = 1;         // cosine falls to a tenth of the peak at the end

  [[nodiscard]] double at(std::size_t step) const;
};

}  // namespace longhaul
