#include "longhaul/plan/auto_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

constexpr std::size_t kStride = 32;     // rows of the table of sizes: ratios 24 % apart
constexpr std::size_t kFineStride = 2;  // 1.4 % apart
constexpr double kAgreementGain = 0.1;
constexpr std::size_t kRoundsBetweenChanges = 10;
constexpr double kWorthAChange = 1.07;  // predicted gain that a change must bring
constexpr double kWorthItAtOnce = 1.3;  // and one that does not wait

}  // namespace

AutoPlanner::AutoPlanner(RoundSizes sizes, const AutoLimits& limits)
    : sizes_(std::move(sizes)), limits_(limits) {}

// Between the two thresholds the rule stays what it is.
void AutoPlanner::note_agreement(double agreement) {
  if (!std::isfinite(agreement)) return;  // of a run that diverges
  agreement_ = agreement_ ? *agreement_ + kAgreementGain * (agreement - *agreement_) : agreement;
  if (rounds_ < kRoundsBetweenChanges || !limits_.may_look_ahead) return;
  if (*agreement_ < kDisagreement) merge_ = Merge::kAhead;
  if (*agreement_ > kAgreement) merge_ = Merge::kLate;
}

IterationModel AutoPlanner::model_of(Merge merge) const {
  return calibrated_model(merge).corrected(agreement_).over(limits_.steps);
}

Decision AutoPlanner::best(const Conditions& replicas) const {
  Decision decision = search(replicas);
  decision.reason = reason_of(replicas, sizes_, decision, why());
  return decision;
}

Decision AutoPlanner::search(const Conditions& replicas) const {
  LONGHAUL_CHECK(!replicas.empty());
  const IterationModel model = model_of(merge_);
  const double fall = risk_.factor();
  const std::span<const RoundSize> table = sizes_.table();
  const Paces paces(replicas);
  Plan best;
  std::size_t best_row = 0;
  Seconds least = Seconds::max();
  const auto try_row = [&](std::size_t row) {
    const Pace pace = paces.of(table[row]);
    const Pace fallen = paces.of(table[row], 1, fall);
    const double dropped = 1 + model.drop_cost(table[row].keep_ratio);
    for (int delay = 0; delay <= limits_.most_delay; ++delay) {
      const Seconds time =
          (pace.at(delay) + fallen.at(delay)) / 2 * (dropped + model.delay_cost(delay));
      if (time < least) {
        best = {.keep_ratio = table[row].keep_ratio, .delay_steps = delay, .merge = merge_};
        best_row = row;
        least = time;
      }
      // More delay costs steps and saves no time.
      if (pace.is_hidden_at(delay) && fallen.is_hidden_at(delay)) break;
    }
  };
  // From the largest ratio and the shortest delay on, so that ties send more and wait less: first
  // in long strides, then around the best.
  for (std::size_t back = 0; back < table.size(); back += kStride) try_row(table.size() - 1 - back);
  const std::size_t last = std::min(table.size() - 1, best_row + kStride);
  const std::size_t first = best_row < kStride ? 0 : best_row - kStride;
  for (std::size_t row = last + 1; row-- > first; row -= std::min(row, kFineStride - 1))
    try_row(row);
  LONGHAUL_CHECK(least < Seconds::max());
  return predicted(replicas, table[best_row], best, model, fall);
}

std::optional<Decision> AutoPlanner::round_closed(const RoundFacts& facts) {
  ++rounds_;
  note_agreement(facts.agreement);
  risk_.note(facts.replicas);
  Decision wanted = search(facts.replicas);
  if (wanted.plan == facts.current) return std::nullopt;
  const Decision kept = predicted(facts.replicas, sizes_.at(facts.current.keep_ratio),
                                  facts.current, model_of(facts.current.merge), risk_.factor());
  const double gain = kept.time() / wanted.time();
  const bool has_new_rule = wanted.plan.merge != facts.current.merge;
  const bool is_soon = rounds_ - last_change_ < kRoundsBetweenChanges;
  if (!has_new_rule && gain < (is_soon ? kWorthItAtOnce : kWorthAChange)) return std::nullopt;
  last_change_ = rounds_;
  wanted.reason = reason_of(facts.replicas, sizes_, wanted, why());
  return wanted;
}

std::string AutoPlanner::why() const {
  std::string text = "the least predicted time to the target";
  if (!agreement_) return text;
  std::array<char, 64> share{};
  (void)std::snprintf(share.data(), share.size(), " (replicas agree by %.2f, so ", *agreement_);
  text += share.data();
  return text + (merge_ == Merge::kLate ? "each steps by itself and corrects late)"
                                        : "all look ahead with one momentum)");
}

}  // namespace longhaul
