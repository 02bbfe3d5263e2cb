// How much of the time is spent computing, over bandwidth and latency: for synchronous training and
// for the plan.
#pragma once

#include <string>
#include <vector>

#include "apps/longhaul/plan/plan_options.h"

namespace longhaul::apps {

struct PlanMap {
  std::vector<Bandwidth> bandwidths;  // columns
  std::vector<Seconds> latencies;     // rows
  // [row][column], from 0 to 1
  std::vector<std::vector<double>> d_sgd;
  std::vector<std::vector<double>> plan;
  std::string recipe;
  std::string work;  // "124000000 parameters, 250ms of computing a step, 4 replicas"
};

// Step time of synchronous training with dense gradients.
Seconds d_sgd_step_time(const PlanOptions& request, const ReplicaConditions& link);

PlanMap plan_map(const PlanOptions& request);
std::string plan_map_text(const PlanMap& map);
std::string plan_map_svg(const PlanMap& map);
// In every map that plan_map_svg() draws.
inline constexpr std::string_view kPlanMapMark = "<desc>longhaul plan --map</desc>";

}  // namespace longhaul::apps
