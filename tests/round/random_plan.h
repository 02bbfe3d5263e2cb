// Plans within the limits, drawn at random: for tests of the forms that a plan has.
#pragma once

#include <random>

#include "longhaul/round/plan.h"

namespace longhaul {

inline Plan random_plan(std::mt19937_64& random) {
  const auto up_to = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const std::vector<std::string> merges = merge_names();
  Plan plan;
  const auto random_ratio = [&] {
    return 1 - std::uniform_real_distribution<double>(0, 1)(random);
  };
  plan.keep_ratio = random_ratio();
  plan.delay_steps = up_to(0, kMostDelaySteps);
  plan.merge = parse_merge(merges[random() % merges.size()]).value();
  if (has_local_steps(plan.merge)) plan.period_steps = up_to(1, kMostPeriodSteps);
  plan.keep_ratios.resize(random() % 5);
  for (double& ratio : plan.keep_ratios) ratio = random_ratio();
  if (has_local_steps(plan.merge) && random() % 2 == 0) {
    plan.period_steps = up_to(1, 12);
    plan.schedule.resize(static_cast<std::size_t>(plan.period_steps));
    for (auto& parts : plan.schedule) {
      for (std::uint32_t part = 0; part < 4; ++part) {
        if (random() % 3 == 0) parts.push_back(part);
      }
    }
    plan.schedule.back() = {0, 3};
  }
  return plan;
}

}  // namespace longhaul
