#include "apps/longhaul/hub_service.h"

#include <iostream>

#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/json_lines.h"
#include "apps/longhaul/status_view.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/status_report.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kLook{0.1};             // between looks at the hub's status
constexpr Seconds kFinishPatience{30.0};  // for replicas to finish after Ctrl-C
constexpr Seconds kSettled{0.5};          // after Ctrl-C before the start
constexpr Seconds kTellEvery{10.0};

nlohmann::ordered_json plan_json(const Decision& decision) {
  return {{"keep_ratio", decision.plan.keep_ratio},
          {"delay_steps", decision.plan.delay_steps},
          {"period_steps", decision.plan.period_steps},
          {"merge", name_of(decision.plan.merge)},
          {"predicted_step_time_s", decision.step_time.count()},
          {"reason", decision.reason}};
}

// Who is in a round's mean, with which payload.
nlohmann::ordered_json contributions(const RoundOutcome& outcome) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < outcome.contributors.size(); ++i)
    all.push_back({{"slot", outcome.contributors[i]}, {"digest", outcome.digests[i]}});
  return all;
}

}  // namespace

void HubWatcher::operator()(const RoundNews& news) {
  if (!start_) start_ = news.time;
  const double time_s = Seconds(news.time - *start_).count();
  const RoundOutcome& outcome = news.outcome;
  if (outcome.decision) {
    if (lines_) {
      nlohmann::ordered_json plan = plan_json(*outcome.decision);
      plan["step"] = outcome.step;
      plan["time_s"] = time_s;
      (void)lines_->try_push(event_line("plan", plan));
    } else {
      log_.info("plan: " + outcome.decision->reason);
    }
  }
  const bool is_start = outcome.members == 0 && outcome.decision;
  if (lines_ && !is_start)
    (void)lines_->try_push(event_line("round", {{"step", outcome.step},
                                                {"from", outcome.from},
                                                {"next", outcome.next},
                                                {"time_s", time_s},
                                                {"members", outcome.members},
                                                {"contributors", contributions(outcome)}}));
}

Result<bool> HubService::run() {
  for (;;) {
    pacer_.wait_until(time_after(clock_.now(), kLook));
    note_strangers();
    const HubStatus status = hub_.status();
    tell(status);
    if (status.failure) return *status.failure;
    if (status.is_finished || is_given_up(status)) return !asked_;
    if (!is_interrupted() || asked_) continue;
    asked_ = clock_.now();
    log_.info("interrupted: tells the replicas, and ends when they have finished");
    hub_.finish();
  }
}

void HubService::note_strangers() {
  const FailedHandshakes failed = failed_handshakes();
  if (failed.count == strangers_) return;
  hub_.note_strangers(failed.count - strangers_, failed.last);
  strangers_ = failed.count;
}

void HubService::tell(const HubStatus& status) {
  if (lines_) {
    while (const std::optional<std::string> line = lines_->pop_until(Deadline::min()))
      std::cout << *line << '\n';
    return print_event("status", status_json(report_of(status, task_)));
  }
  if (status.next_round == told_round_ || clock_.now() - told_ < kTellEvery) return;
  told_ = clock_.now();
  told_round_ = status.next_round;
  log_.info("round " + std::to_string(status.next_round) + ", " + std::to_string(status.sessions) +
            " of " + std::to_string(status.slots) + " replicas");
}

// After an interrupt: nobody waits for the start any more, or they take too long to finish.
bool HubService::is_given_up(const HubStatus& status) const {
  if (!asked_) return false;
  const Seconds since = clock_.now() - *asked_;
  return since > kFinishPatience ||
         (!status.is_started && status.sessions == 0 && since > kSettled);
}

}  // namespace longhaul::apps
