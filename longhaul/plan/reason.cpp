#include "longhaul/plan/reason.h"

#include <algorithm>

#include "longhaul/base/units.h"

namespace longhaul {
namespace {

constexpr double kHardlyMore = 0.005;  // steps, over those of synchronous training
constexpr double kManyMore = 0.5;
constexpr double kHardlyLonger = 1.01;  // than computing

std::string rounded(double value) { return formatted(value < 9.95 ? "%.2g" : "%.0f", value); }

// Ratios are round numbers of three digits.
std::string knobs(const Plan& plan) {
  const bool is_by_layer = !plan.schedule.empty();
  std::string text = is_by_layer            ? "send each layer by itself"
                     : plan.keep_ratio >= 1 ? "send everything"
                                            : formatted("keep %.3g %%", 100 * plan.keep_ratio);
  if (plan.period_steps > 1)
    text +=
        (is_by_layer ? " in every " : " of every ") + std::to_string(plan.period_steps) + " steps";
  if (plan.delay_steps == 0) return text + " and wait for each mean";
  return text + " and merge " + std::to_string(plan.delay_steps) +
         (plan.delay_steps == 1 ? " step late" : " steps late");
}

void add_steps(double relative, std::string& text) {
  const double more = relative - 1;
  if (more > kManyMore) {
    text += ", and about " + rounded(1 + more) + " times the steps are needed";
  } else if (more > kHardlyMore) {
    text += ", and about " + percent(more) + " more steps are needed";
  }
}

}  // namespace

std::string percent(double share) {
  return formatted(share < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * share);
}

std::string reason_of(const Conditions& replicas, const RoundSizes& sizes, const Decision& decision,
                      std::string_view why) {
  const RoundSize size = sizes.at(decision.plan.keep_ratio);
  const Paces paces(replicas);
  const ReplicaConditions& replica = replicas[paces.slowest(size)];
  const Seconds compute = paces.computing();
  const double alpha = std::min(replica.up.bytes_per_second, replica.down.bytes_per_second) *
                       compute.count() / sizes.dense_bytes();
  std::string text = knobs(decision.plan) + ": ";
  text.append(why);
  text += "; a step carries " + percent(alpha) + " of a dense update and a round trip lasts " +
          rounded(2 * replica.latency / compute) + " steps, so a step takes " +
          to_string(decision.step_time);
  const bool is_computing = decision.is_hidden && decision.step_time < compute * kHardlyLonger;
  text +=
      is_computing ? ", all of it computing" : " of which " + to_string(compute) + " are computing";
  if (decision.is_hidden && !is_computing) text += " and the rest is what rounds cost";
  add_steps(decision.relative_steps, text);
  return text;
}

std::string reason_by_layer(const Decision& decision, Seconds compute, double hidden,
                            std::string_view why) {
  std::string text = knobs(decision.plan) + ", uncompressed: ";
  text.append(why);
  text += "; " + percent(hidden) + " of the communication is hidden, so a step takes " +
          to_string(decision.step_time) + " of which " + to_string(compute) + " are computing";
  add_steps(decision.relative_steps, text);
  return text;
}

std::string against(const Decision& chosen, const Decision& other) {
  return "; to " + knobs(other.plan) + " would take " + rounded(other.time() / chosen.time()) +
         " times as long";
}

}  // namespace longhaul
