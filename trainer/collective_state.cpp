// Collective: its part of a checkpoint.
#include <limits>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/exchange/saved.h"
#include "trainer/collective.h"

namespace longhaul::trainer {
namespace {

// Names in a checkpoint.
constexpr const char* kMeans = "collective.means";  // step, part and elements of each
constexpr const char* kPlan = "collective.plan";

}  // namespace

void Collective::save(State& checkpoint) const {
  const MutexLock lock(mutex_);
  LONGHAUL_CHECK_EQ(closed_.size(), in_flight_);
  std::vector<std::uint64_t> means;
  for (const auto& [round, closed] : closed_) {
    const CheckedPayload& payload = closed.mean.terms.front().payload;
    means.insert(means.end(), {round.step, round.part, payload.view().elements()});
    checkpoint.blobs[name_in_round(kMeans, round)] = *payload.bytes();
    if (closed.mean.next_plan)
      save_plan(name_in_round(kPlan, round), *closed.mean.next_plan, checkpoint);
  }
  checkpoint.values[kMeans] = means;
  // Nothing is gathered now: the thread waits for the next update of this rank.
  if (planner_) save_plan(kPlan, planner_->plan(), checkpoint);
  if (compressor_) compressor_->save(checkpoint);
}

Status Collective::load(const State& checkpoint) {
  const auto means = LONGHAUL_TRY(checkpoint.value<std::vector<std::uint64_t>>(kMeans));
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i + 2 < means.size(); i += 3) {
    if (means[i + 1] > std::numeric_limits<std::uint32_t>::max() ||
        means[i + 2] > options_.elements)
      return Error{ErrorCode::kMismatch, std::string(kMeans) + ": a round that cannot be"};
    const RoundId round{.step = means[i], .part = static_cast<std::uint32_t>(means[i + 1])};
    const ByteView saved = LONGHAUL_TRY(checkpoint.blob(name_in_round(kMeans, round)));
    Result<CheckedPayload> payload =
        CheckedPayload::check(ByteBuffer(saved.begin(), saved.end()), means[i + 2]);
    if (!payload.ok()) return std::move(payload).error().within(name_in_round(kMeans, round));
    Mean mean{.round = round, .terms = {{.payload = std::move(payload).value()}}};
    const Result<Plan> plan = load_plan(name_in_round(kPlan, round), checkpoint);
    if (plan.ok()) mean.next_plan = *plan;
    closed_[round] = {.mean = std::move(mean)};
  }
  in_flight_ = closed_.size();
  if (planner_) {
    const Plan plan = LONGHAUL_TRY(load_plan(kPlan, checkpoint));
    planner_->go_on_with(plan);
  }
  return compressor_ ? compressor_->load(checkpoint) : Status(Done{});
}

}  // namespace longhaul::trainer
