// How much of the time is spent computing, over bandwidth and latency: for synchronous training and
// for the plan.
#pragma once

#include <string>
#include <vector>

#include "apps/longhaul/plan/plan_options.h"

namespace longhaul::apps {

// Columns and rows of the map.
std::vector<Bandwidth> map_bandwidths();
std::vector<Seconds> map_latencies();

// Shares of the time, from 0 to 1, as [row][column].
using MapShares = std::vector<std::vector<double>>;
MapShares d_sgd_shares(const PlanOptions& request);
MapShares plan_shares(const PlanOptions& request);

// Step time of synchronous training with dense gradients.
Seconds d_sgd_step_time(const PlanOptions& request, const ReplicaConditions& link);

std::string plan_map_text(const PlanOptions& request);
std::string plan_map_svg(const PlanOptions& request);
// In every map that plan_map_svg() draws.
inline constexpr std::string_view kPlanMapMark = "<desc>longhaul plan --map</desc>";

}  // namespace longhaul::apps
