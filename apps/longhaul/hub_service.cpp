#include "apps/longhaul/hub_service.h"

#include <iostream>

#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/status_view.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/status_report.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kLook{0.1};             // between looks at the hub's status
constexpr Seconds kFinishPatience{30.0};  // for replicas to finish after Ctrl-C
constexpr Seconds kSettled{0.5};          // after Ctrl-C before the start
constexpr Seconds kTellEvery{10.0};

}  // namespace

Result<bool> HubService::run() {
  for (;;) {
    pacer_.wait_until(time_after(clock_.now(), kLook));
    note_strangers();
    const HubStatus status = hub_.status();
    const bool is_over = status.is_finished || is_given_up(status);
    tell(status, is_over || status.failure);
    if (status.failure) return *status.failure;
    if (is_over) return !asked_;
    if (!is_interrupted() || asked_) continue;
    asked_ = clock_.now();
    log_.info("interrupted: tells the replicas, and ends when they have finished");
    hub_.finish(v1::CAUSE_STOPPED);
  }
}

void HubService::note_strangers() {
  const FailedHandshakes failed = failed_handshakes();
  if (failed.count == strangers_) return;
  hub_.note_strangers(failed.count - strangers_, failed.last);
  strangers_ = failed.count;
}

void HubService::tell(const HubStatus& status, bool is_last) {
  if (lines_) {
    while (const std::optional<std::string> line = lines_->pop_until(Deadline::min()))
      std::cout << *line << '\n';
    std::cout << std::flush;
    if (pace_.is_due(status, clock_.now()) || is_last)
      print_event("status", status_json(report_of(status, task_)));
    return;
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
