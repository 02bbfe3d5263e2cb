#include "longhaul/plan/layer_planner.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

LayerProfile parts_for(const LayerProfile& parts, const Conditions& replicas) {
  Seconds compute{};
  for (const ReplicaConditions& replica : replicas) compute = std::max(compute, replica.compute);
  return scaled(parts, compute);
}

LayerSteps steps_of(const Plan& plan, std::size_t parts) {
  LayerSteps steps;
  for (std::size_t step = 0; step < static_cast<std::size_t>(plan.period_steps); ++step)
    steps.push_back(parts_in_step(plan, parts, step));
  return steps;
}

std::size_t rounds_in(const LayerSteps& steps) {
  std::size_t rounds = 0;
  for (const auto& parts : steps) rounds += parts.size();
  return rounds;
}

}  // namespace

LayerLink layer_link(const Conditions& replicas, const RoundSizes& sizes, double keep_ratio,
                     bool is_one_way) {
  LONGHAUL_CHECK(!replicas.empty());
  LayerLink link{.up = replicas[0].up, .down = replicas[0].down, .is_one_way = is_one_way};
  for (const ReplicaConditions& replica : replicas) {
    link.up.bytes_per_second = std::min(link.up.bytes_per_second, replica.up.bytes_per_second);
    link.down.bytes_per_second =
        std::min(link.down.bytes_per_second, replica.down.bytes_per_second);
    link.latency = std::max(link.latency, replica.latency + replica.round_wait / 2);
  }
  const RoundSize size = sizes.exact(keep_ratio);
  link.up.bytes_per_second *= sizes.dense_bytes() / size.up;
  link.down.bytes_per_second *= sizes.dense_bytes() / size.down;
  return link;
}

LayerTimeline timeline_of(const Plan& plan, const PlannerOptions& options,
                          const Conditions& replicas, const RoundSizes& sizes) {
  const std::size_t parts = options.parts.layers.size();
  const std::vector<int> delays(plan.delay_steps > 0 ? parts : 0, plan.delay_steps);
  return layer_timeline(parts_for(options.parts, replicas),
                        layer_link(replicas, sizes, plan.keep_ratio, options.is_one_way),
                        steps_of(plan, parts), delays);
}

// The work of a round is that of a whole model: a period has as many as its bytes make.
Decision predicted_by_layer(const Plan& plan, const PlannerOptions& options,
                            const Conditions& replicas, const RoundSizes& sizes,
                            const IterationModel& model, double fall) {
  Conditions fallen = replicas;
  Seconds work{};
  for (ReplicaConditions& replica : fallen) {
    replica.up.bytes_per_second /= fall;
    replica.down.bytes_per_second /= fall;
    work = std::max(work, replica.round_work);
  }
  const LayerTimeline now = timeline_of(plan, options, replicas, sizes);
  work *= now.bytes / options.parts.bytes() / plan.period_steps;
  const Seconds then = timeline_of(plan, options, fallen, sizes).step_time;
  return {.plan = plan,
          .step_time = now.step_time + work,
          .likely_step_time = (now.step_time + then) / 2 + work,
          .relative_steps = model.steps(plan),
          .is_hidden = now.hidden_share >= 1};
}

Decision scheduled(Plan plan, LayerPolicy policy, const PlannerOptions& options,
                   const Conditions& replicas, const RoundSizes& sizes) {
  const LayerSchedule schedule =
      make_layer_schedule(parts_for(options.parts, replicas),
                          layer_link(replicas, sizes, plan.keep_ratio, options.is_one_way), policy,
                          static_cast<std::size_t>(plan.period_steps));
  plan.schedule = schedule.steps;
  plan.delay_steps = std::max(plan.delay_steps, schedule.longest_delay());
  // All parts merge equally late.
  const LayerTimeline timeline = timeline_of(plan, options, replicas, sizes);
  return {.plan = std::move(plan),
          .step_time = timeline.step_time,
          .likely_step_time = timeline.step_time,
          .is_hidden = timeline.hidden_share >= 1,
          .reason = schedule.reason};
}

Decision LayerPlanner::first(const Conditions& replicas) {
  return scheduled(options().plan, options().policy, options(), replicas, sizes());
}

std::optional<Decision> LayerPlanner::round_closed(const RoundFacts& facts) {
  const bool follows_links = options().policy == LayerPolicy::kScheduled ||
                             options().policy == LayerPolicy::kScheduledLate;
  if (!follows_links || facts.replicas.empty()) return std::nullopt;
  if (++rounds_ < rounds_in(steps_of(facts.current, options().parts.layers.size())))
    return std::nullopt;
  rounds_ = 0;
  const Seconds now = timeline_of(facts.current, options(), facts.replicas, sizes()).step_time;
  Decision decision = first(facts.replicas);
  if (decision.plan == facts.current || now < decision.step_time * kWorthASchedule)
    return std::nullopt;
  return decision;
}

}  // namespace longhaul
