#include "longhaul/hub/hub_watcher.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "longhaul/codec/digest.h"
#include "longhaul/hub/status_view.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostPlanLines = 3;  // a minute

nlohmann::ordered_json decision_json(const Decision& decision) {
  nlohmann::ordered_json json = plan_json(decision.plan);
  json["predicted_step_time_s"] = decision.step_time.count();
  json["reason"] = decision.reason;
  return json;
}

// The step after the last round's, but for the rounds that share a step.
std::uint64_t first_step_of(const JournalRound& round) {
  const RoundId from = round.from;
  return from.part == 0 ? from.step : std::min(from.step + 1, round.id.step);
}

// Lists the replicas in a round's mean, each with the digest and the arrival of its payload.
nlohmann::ordered_json contributions(const RoundOutcome& outcome, TimePoint start) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < outcome.round.contributors.size(); ++i) {
    const Contributor& one = outcome.round.contributors[i];
    all.push_back({{"slot", one.slot}, {"digest", digest_text(one.digest)}});
    if (i < outcome.arrivals.size())
      all.back()["arrived_s"] = Seconds(outcome.arrivals[i] - start).count();
  }
  return all;
}

}  // namespace

void HubWatcher::operator()(const RoundNews& news) {
  if (!start_) start_ = news.time;
  const double time_s = Seconds(news.time - *start_).count();
  if (news.evaluation) {
    if (lines_) (void)lines_->try_push(event_line("evaluation", evaluation_json(*news.evaluation)));
    return;
  }
  const RoundOutcome& outcome = news.outcome;
  if (outcome.decision) {
    if (lines_) {
      nlohmann::ordered_json plan = decision_json(*outcome.decision);
      plan["step"] = outcome.round.id.step;
      plan["time_s"] = time_s;
      (void)lines_->try_push(event_line("plan", plan));
    } else if (const auto line = repeats_.line_of_kind("plan", "plan: " + outcome.decision->reason,
                                                       kMostPlanLines, news.time)) {
      log_.info(*line);
    }
  }
  if (lines_ && tells_rounds_ && !news.is_start)
    (void)lines_->try_push(
        event_line("round", {{"step", outcome.round.id.step},
                             {"part", outcome.round.id.part},
                             {"from", first_step_of(outcome.round)},
                             {"next", outcome.standing.next_to_close.step},
                             {"next_part", outcome.standing.next_to_close.part},
                             {"time_s", time_s},
                             {"monotonic_s", Seconds(news.time.time_since_epoch()).count()},
                             {"members", outcome.members},
                             {"contributors", contributions(outcome, *start_)}}));
}

}  // namespace longhaul
