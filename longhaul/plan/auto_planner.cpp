#include "longhaul/plan/auto_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/reason.h"

namespace longhaul {
namespace {

constexpr std::array<int, 10> kRoundNumbers = {100, 125, 160, 200, 250, 315, 400, 500, 630, 800};
constexpr std::size_t kPeriodsInARun = 10;
constexpr double kAgreementGain = 0.1;
constexpr double kRoundsBetweenChanges = 10;
constexpr Seconds kMinute{60.0};
constexpr double kWorthAChange = 1.07;    // predicted gain that a change must bring
constexpr double kWorthItAtOnce = 1.3;    // and one that does not wait
constexpr double kMoreForAChange = 0.08;  // where rounds are so short that noise is most of them
constexpr double kMoreAtOnce = 0.7;
constexpr double kWorthANewRule = 0.5;  // the other rule may seem slower, as it does not diverge
constexpr double kWorthAWord = 0.95;    // a fall of rates to less than this part of them

// Fewer rounds tell less of links and replicas, and plans change later: a period must be worth it.
double weight_of(int period) { return period == 1 ? 1 : kWorthAPeriod; }

}  // namespace

std::vector<double> round_ratios(const RatioRange& limits) {
  std::vector<double> ratios{limits.least};
  for (double unit = 1e9; unit > 1; unit /= 10) {
    for (const int number : kRoundNumbers) {
      const double ratio = number / unit;
      if (ratio > limits.least && ratio < limits.most) ratios.push_back(ratio);
    }
  }
  if (limits.most > limits.least) ratios.push_back(limits.most);
  return ratios;
}

AutoPlanner::AutoPlanner(RoundSizes sizes, const PlannerOptions& options)
    : Planner(std::move(sizes), options) {
  set_choices();
  set_merge(Merge::kLate);
}

void AutoPlanner::set_choices() {
  choices_.clear();
  for (const double ratio : round_ratios({.least = sizes().table().front().keep_ratio,
                            .most = sizes().table().back().keep_ratio}))
    choices_.push_back(sizes().at(ratio));
}

void AutoPlanner::expect(std::size_t replicas) {
  if (resize(replicas)) set_choices();
}

// Between the two thresholds the rule stays what it is.
void AutoPlanner::note_agreement(double agreement, double rounds) {
  if (!std::isfinite(agreement)) return;  // of a run that diverges
  agreement_ =
      agreement_ ? *agreement_ + rounds * kAgreementGain * (agreement - *agreement_) : agreement;
  if (rounds_ < kRoundsBetweenChanges || !options().may_look_ahead) return;
  if (*agreement_ < kDisagreement && merge_ != Merge::kAhead) set_merge(Merge::kAhead);
  if (*agreement_ > kAgreement && merge_ != Merge::kLate) set_merge(Merge::kLate);
}

IterationModel AutoPlanner::model_of(const Plan& plan) const {
  return calibrated_model(plan).corrected(agreement_).over(options().steps);
}

Decision AutoPlanner::best(const Conditions& replicas) const {
  const Decision whole = search(replicas);
  const std::optional<Decision> layers = best_by_layer(replicas);
  const bool is_by_layer = layers && layers->time() < whole.time();
  return is_by_layer ? explained(replicas, *layers, whole) : explained(replicas, whole, layers);
}

void AutoPlanner::set_merge(Merge merge) {
  const IterationModel& model = calibrated_model(merge);
  merge_ = merge;
  lags_.clear();
  for (const RoundSize& size : choices_) lags_.push_back(model.lag_of(size.keep_ratio));
}

// The fastest plan so far, and the period that is being tried.
class AutoPlanner::Search {
 public:
  Search(const AutoPlanner& planner, const Conditions& replicas, const IterationModel& model)
      : paces_(replicas),
        choices_(planner.choices_),
        lags_(planner.lags_),
        model_(model),
        fall_(planner.risk_.factor()) {}

  // From the ratio on that links just bear, in both directions as far as a plan can still be
  // faster: more bytes only take longer, fewer only need more steps. False where no plan with that
  // period can be.
  bool try_period(int period) {
    set(period);
    if (paces_.computing() * fewest_ >= least_) return false;
    const auto borne = std::ranges::partition_point(choices_, [&](const RoundSize& size) {
      return paces_.least(size, period, fall_) <= paces_.busy(period);
    });
    const auto start =
        static_cast<std::size_t>(std::max(borne - choices_.begin(), std::ptrdiff_t{1})) - 1;
    for (std::size_t choice = start; choice < choices_.size(); ++choice) {
      if (paces_.least(choices_[choice], period) * fewest_ >= least_) break;
      try_ratio(choice);
    }
    for (std::size_t choice = start; choice-- > 0;) {
      if (paces_.busy(period) * steps_of(choice) >= least_) break;
      try_ratio(choice);
    }
    return true;
  }

  [[nodiscard]] bool has_plan() const { return least_ < Seconds::max(); }
  [[nodiscard]] const Plan& best() const { return best_; }
  [[nodiscard]] const RoundSize& best_size() const { return choices_[best_choice_]; }

 private:
  void set(int period) {
    period_ = period;
    period_lag_ = model_.lag_of(1.0 / period);
    loops_.clear();
    for (int delay = 0; delay <= kMostAutoDelay; ++delay) loops_.emplace_back(delay, period);
    weight_ = weight_of(period);
    fewest_ = weight_ * (1 + model_.drift_cost(period));
  }

  [[nodiscard]] double steps_of(std::size_t choice) const {
    return fewest_ + weight_ * model_.drop_cost(lags_[choice] * period_lag_);
  }

  void try_ratio(std::size_t choice) {
    const RoundSize& size = choices_[choice];
    const double steps = steps_of(choice);
    const Seconds floor = (paces_.least(size, period_) + paces_.least(size, period_, fall_)) / 2;
    if (floor * steps >= least_) return;
    const Pace pace = paces_.of(size, period_);
    const Pace fallen = paces_.of(size, period_, fall_);
    for (int delay = 0; const Loop& loop : loops_) {
      const double all_steps = steps + weight_ * model_.delay_cost(delay);
      if (floor * all_steps >= least_) return;  // no longer delay helps
      if ((pace.at_least(loop) + fallen.at_least(loop)) / 2 * all_steps < least_) {
        const Seconds time = (pace.at(loop) + fallen.at(loop)) / 2 * all_steps;
        if (time < least_) {
          best_ = {.keep_ratio = size.keep_ratio, .delay_steps = delay, .period_steps = period_};
          best_choice_ = choice;
          least_ = time;
        }
      }
      ++delay;
    }
  }

  Paces paces_;
  std::span<const RoundSize> choices_;
  std::span<const double> lags_;
  IterationModel model_;
  double fall_;

  int period_ = 1;
  double period_lag_ = 1;    // lag_of(1/H)
  std::vector<Loop> loops_;  // of each delay
  double weight_ = 1;
  double fewest_ = 1;  // steps that any plan with the period counts for

  Plan best_;
  std::size_t best_choice_ = 0;
  Seconds least_ = Seconds::max();
};

Decision AutoPlanner::search(const Conditions& replicas) const {
  LONGHAUL_CHECK(!replicas.empty());
  const IterationModel model = model_of({.merge = merge_});
  Search search(*this, replicas, model);
  for (int period = 1; period <= most_period(); period *= 2) {
    if (!search.try_period(period)) break;
  }
  LONGHAUL_CHECK(search.has_plan());
  Plan best = search.best();
  best.merge = merge_;
  return predicted(replicas, search.best_size(), best, model, risk_.factor());
}

// Some periods must fit into the run.
int AutoPlanner::most_period() const {
  if (!has_local_steps(merge_)) return 1;
  if (options().steps == 0) return kMostAutoPeriod;
  return std::clamp(static_cast<int>(options().steps / kPeriodsInARun), 1, kMostAutoPeriod);
}

// How much of a full round has passed with this one.
double AutoPlanner::pass_time(const RoundFacts& facts) {
  const Plan& plan = facts.current;
  const Seconds period = plan.period_steps * prediction_of(facts.replicas, plan).step_time;
  std::size_t rounds_of_period = plan.schedule.empty() ? 1 : 0;
  for (const auto& parts : plan.schedule) rounds_of_period += parts.size();
  const Seconds took = period / static_cast<double>(rounds_of_period);
  const double part = std::min(1.0, took / kFullRound);
  const double rounds = part * part;  // as the noise of a time is the same for short and long ones
  time_ += took;
  rounds_ += rounds;
  return rounds;
}

// The gain that is enough at this time, after a round that counts for so much.
double AutoPlanner::worth_a_change(double rounds) const {
  const bool is_soon = rounds_ - last_change_ < kRoundsBetweenChanges;
  const bool is_restless =
      changes_.size() == kMostChangesAMinute && time_ - changes_.front() < kMinute;
  return is_soon || is_restless ? kWorthItAtOnce + (1 - rounds) * kMoreAtOnce
                                : kWorthAChange + (1 - rounds) * kMoreForAChange;
}

std::optional<Decision> AutoPlanner::round_closed(const RoundFacts& facts) {
  if (options().kind == PlannerKind::kFrozen) return std::nullopt;
  if (!knows_parts_of(facts.current)) return best(facts.replicas);
  // A run that goes on with another planner keeps its rule until the replicas say otherwise.
  if (rounds_ == 0 && facts.current.merge != merge_) set_merge(facts.current.merge);
  const double rounds = pass_time(facts);
  note_agreement(facts.agreement, rounds);
  risk_.note(facts.replicas, rounds);
  try_layers(facts.replicas);
  Decision wanted = best_of_both(facts.replicas, facts.current);
  const double wished_for = std::exchange(wished_for_, 0) + rounds;
  if (wanted.plan == facts.current) return std::nullopt;
  const Decision kept = prediction_of(facts.replicas, facts.current);
  if (wanted.plan.merge != facts.current.merge && kept.time() / wanted.time() < kWorthANewRule) {
    // Looking ahead needs a round in every step, which the slowest links cannot bear.
    set_merge(facts.current.merge);
    wanted = best_of_both(facts.replicas, facts.current);
  }
  const double gain = kept.time() / wanted.time();
  const bool has_new_rule = wanted.plan.merge != facts.current.merge;
  if (!has_new_rule && gain < worth_a_change(rounds)) return std::nullopt;
  if (wished_for < 1) {
    wished_for_ = wished_for;
    return std::nullopt;
  }
  last_change_ = rounds_;
  changes_.push_back(time_);
  if (changes_.size() > kMostChangesAMinute) changes_.pop_front();
  const bool is_by_layer = !wanted.plan.schedule.empty();
  return explained(facts.replicas, std::move(wanted),
                   is_by_layer ? search(facts.replicas) : tried_layers(facts.replicas));
}

std::string AutoPlanner::why() const {
  std::string text = "the least predicted time to the target";
  if (const double left = 1 / risk_.factor(); left < kWorthAWord)
    text += formatted(" on links that may fall to %.0f %% of their rate", 100 * left);
  if (!agreement_) return text;
  text += formatted(" (replicas agree by %.2f, so ", *agreement_);
  return text + (merge_ == Merge::kLate ? "each steps by itself and corrects late)"
                                        : "all look ahead with one momentum)");
}

}  // namespace longhaul
