#include "longhaul/sync/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace longhaul {

double LrSchedule::at(std::size_t step) const {
  constexpr double kFloor = 0.1;
  if (step < warmup_steps)
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (shape == LrShape::kConstant || steps <= warmup_steps) return peak;
  const double done =
      static_cast<double>(step - warmup_steps) / static_cast<double>(steps - warmup_steps);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(1.0, done)));
  return peak * (kFloor + (1.0 - kFloor) * cosine);
}

}  // namespace longhaul
