#include "longhaul/plan/auto_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

// Rows of the table of sizes that a search passes over: ratios 24, 6 and 1.4 % apart.
constexpr std::size_t kStride = 32;
constexpr std::size_t kShortStride = 8;
constexpr std::size_t kFineStride = 2;
constexpr std::size_t kPeriodsInARun = 10;
constexpr double kAgreementGain = 0.1;
constexpr std::size_t kRoundsBetweenChanges = 10;
constexpr double kWorthAChange = 1.07;  // predicted gain that a change must bring
constexpr double kWorthItAtOnce = 1.3;  // and one that does not wait
constexpr double kWorthANewRule = 0.5;  // the other rule may seem slower, as it does not diverge

// Fewer rounds tell less of links and replicas, and plans change later: a period must be worth it.
double weight_of(int period) { return period == 1 ? 1 : kWorthAPeriod; }

}  // namespace

AutoPlanner::AutoPlanner(RoundSizes sizes, const AutoLimits& limits)
    : sizes_(std::move(sizes)), limits_(limits) {
  set_merge(Merge::kLate);
}

// Between the two thresholds the rule stays what it is.
void AutoPlanner::note_agreement(double agreement) {
  if (!std::isfinite(agreement)) return;  // of a run that diverges
  agreement_ = agreement_ ? *agreement_ + kAgreementGain * (agreement - *agreement_) : agreement;
  if (rounds_ < kRoundsBetweenChanges || !limits_.may_look_ahead) return;
  if (*agreement_ < kDisagreement && merge_ != Merge::kAhead) set_merge(Merge::kAhead);
  if (*agreement_ > kAgreement && merge_ != Merge::kLate) set_merge(Merge::kLate);
}

IterationModel AutoPlanner::model_of(Merge merge) const {
  return calibrated_model(merge).corrected(agreement_).over(limits_.steps);
}

Decision AutoPlanner::best(const Conditions& replicas) const {
  Decision decision = search(replicas);
  decision.reason = reason_of(replicas, sizes_, decision, why());
  return decision;
}

void AutoPlanner::set_merge(Merge merge) {
  merge_ = merge;
  lags_.clear();
  for (const RoundSize& row : sizes_.table())
    lags_.push_back(calibrated_model(merge).lag_of(row.keep_ratio));
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
  const auto try_row = [&](std::size_t row, int period, double lag) {
    const double weight = weight_of(period);
    const double steps =
        weight * (1 + model.drift_cost(period) + model.drop_cost(lags_[row] * lag));
    const Seconds floor =
        (paces.least(table[row], period) + paces.least(table[row], period, fall)) / 2;
    if (floor * steps >= least) return;
    const Pace pace = paces.of(table[row], period);
    const Pace fallen = paces.of(table[row], period, fall);
    for (int delay = 0; delay <= limits_.most_delay; ++delay) {
      const double all_steps = steps + weight * model.delay_cost(delay);
      if (floor * all_steps >= least) return;  // no longer delay helps
      if ((pace.at_least(delay) + fallen.at_least(delay)) / 2 * all_steps >= least) continue;
      const Seconds now = pace.at(delay);
      const Seconds then = fallen.at(delay);
      const Seconds time = (now + then) / 2 * all_steps;
      if (time < least) {
        best = {.keep_ratio = table[row].keep_ratio,
                .delay_steps = delay,
                .period_steps = period,
                .merge = merge_};
        best_row = row;
        least = time;
      }
    }
  };
  // In long strides, from the row on that links just bear, in both directions as far as a plan can
  // still be faster: more bytes only take longer, fewer only need more steps.
  const auto try_period = [&](int period) {
    const double lag = model.lag_of(1.0 / period);
    const double fewest = weight_of(period) * (1 + model.drift_cost(period));
    const auto borne = std::ranges::partition_point(table, [&](const RoundSize& size) {
      return paces.least(size, period, fall) <= paces.computing();
    });
    const auto start =
        static_cast<std::size_t>(std::max(borne - table.begin(), std::ptrdiff_t{1})) - 1;
    for (std::size_t row = start; row < table.size(); row += kStride) {
      if (paces.least(table[row], period) * fewest >= least) break;
      try_row(row, period, lag);
    }
    for (std::size_t row = start; row >= kStride;) {
      row -= kStride;
      if (paces.computing() * (fewest + weight_of(period) * model.drop_cost(lags_[row] * lag)) >=
          least)
        break;
      try_row(row, period, lag);
    }
  };
  // Between the rows that longer strides have tried.
  const auto look_around_the_best = [&](std::size_t every, std::size_t within) {
    const double lag = model.lag_of(1.0 / best.period_steps);
    const std::size_t middle = best_row;
    const int period = best.period_steps;
    for (std::size_t away = every; away < within; away += every) {
      if (middle + away < table.size()) try_row(middle + away, period, lag);
      if (middle >= away) try_row(middle - away, period, lag);
    }
  };
  for (int period = 1; period <= most_period(); period *= 2) {
    if (paces.computing() * weight_of(period) * (1 + model.drift_cost(period)) >= least) break;
    try_period(period);
    if (period == 1) look_around_the_best(kShortStride, kStride);
  }
  if (best.period_steps > 1) look_around_the_best(kShortStride, kStride);
  look_around_the_best(kFineStride, kShortStride);
  LONGHAUL_CHECK(least < Seconds::max());
  return predicted(replicas, table[best_row], best, model, fall);
}

// Some periods must fit into the run.
int AutoPlanner::most_period() const {
  if (!has_local_steps(merge_)) return 1;
  if (limits_.steps == 0) return limits_.most_period;
  return std::clamp(static_cast<int>(limits_.steps / kPeriodsInARun), 1, limits_.most_period);
}

std::optional<Decision> AutoPlanner::round_closed(const RoundFacts& facts) {
  ++rounds_;
  note_agreement(facts.agreement);
  risk_.note(facts.replicas);
  Decision wanted = search(facts.replicas);
  if (wanted.plan == facts.current) return std::nullopt;
  const Decision kept = predicted(facts.replicas, sizes_.at(facts.current.keep_ratio),
                                  facts.current, model_of(facts.current.merge), risk_.factor());
  if (wanted.plan.merge != facts.current.merge && kept.time() / wanted.time() < kWorthANewRule) {
    // Looking ahead needs a round in every step, which the slowest links cannot bear.
    set_merge(facts.current.merge);
    wanted = search(facts.replicas);
  }
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
  text += formatted(" (replicas agree by %.2f, so ", *agreement_);
  return text + (merge_ == Merge::kLate ? "each steps by itself and corrects late)"
                                        : "all look ahead with one momentum)");
}

}  // namespace longhaul
