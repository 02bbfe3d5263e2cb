#include "apps/longhaul/hub/hub_service.h"

#include <iostream>

#include "longhaul/exchange/closing.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/status_report.h"
#include "longhaul/hub/status_view.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kLook{0.1};             // between looks at the hub's status
constexpr Seconds kFinishPatience{30.0};  // for replicas to finish after Ctrl-C
constexpr Seconds kTellEvery{10.0};

}  // namespace

Result<bool> HubService::run() {
  for (;;) {
    pacer_.wait_until(time_after(clock_.now(), kLook));
    note_strangers();
    const HubStatus status = hub_.status();
    const bool is_over = status.is_finished || is_given_up();
    tell(status, is_over || status.failure);
    if (status.failure) return *status.failure;
    if (is_over && asked_) {
      tell_of_rest(status);
    } else if (status.is_finished) {
      tell_end(status);
    }
    if (is_over) return !asked_;
    if (!is_interrupted() || asked_) continue;
    asked_ = clock_.now();
    tell_of_stop(status);
    hub_.finish(v1::CAUSE_STOPPED);
  }
}

void HubService::note_strangers() {
  const std::uint64_t failed = failed_handshakes();
  if (failed == strangers_) return;
  hub_.note_strangers(failed - strangers_, last_failed_handshake());
  strangers_ = failed;
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
  std::string line = "step " + std::to_string(status.step) + " of " + std::to_string(status.steps);
  line +=
      ", " + std::to_string(status.sessions) + " of " + std::to_string(status.slots) + " replicas";
  if (const std::string pace = pace_text(status.steps_per_s, status.left); !pace.empty())
    line += ", " + pace;
  if (status.evaluation) line += ", " + evaluation_text(score_from(*status.evaluation).evaluation);
  log_.info(line);
}

void HubService::tell_end(const HubStatus& status) const {
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  for (const auto& [name, replica] : status.replicas) {
    up += replica.bytes_up;
    down += replica.bytes_down;
  }
  const double time_s = status.time.count();
  const double steps_per_s = time_s > 0 ? static_cast<double>(status.steps_here) / time_s : 0;
  if (lines_) {
    nlohmann::ordered_json end{{"cause", cause_name(cause_from(status.cause))},
                               {"steps", status.steps},
                               {"time_s", time_s},
                               {"steps_per_s", steps_per_s}};
    const bool is_scored = status.evaluation && status.evaluation->is_closing();
    for (const char* key : {"loss", "accuracy", "samples"})
      end[key] = is_scored ? evaluation_json(*status.evaluation).at(key) : nullptr;
    end.update({{"bytes_up", up}, {"bytes_down", down}, {"digest", status.digest}});
    return print_event("finished", end);
  }
  const std::string next =
      arguments_.directory.empty()
          ? ""
          : "longhaul export " + arguments_.directory + " --out model.safetensors";
  std::cout << two_columns(
      {{"ended", ending_text(cause_from(status.cause), status.steps, steps_)},
       {"score",
        status.evaluation ? evaluation_text(score_from(*status.evaluation).evaluation) : "none"},
       {"time",
        to_string(status.time) + (steps_per_s > 0 ? ", " : "") + pace_text(steps_per_s, {})},
       {"sent", bytes_text(up) + " up, " + bytes_text(down) + " down"},
       {"digest", status.digest},
       {"next", next}});
}

// After an interrupt: they take too long to finish.
bool HubService::is_given_up() const { return asked_ && clock_.now() - *asked_ > kFinishPatience; }

void HubService::tell_of_stop(const HubStatus& status) const {
  std::string here;
  std::string away;
  for (const auto& [name, replica] : status.replicas) {
    std::string& names = replica.is_connected ? here : away;
    if (replica.is_connected || !replica.has_left) names += (names.empty() ? "" : ", ") + name;
  }
  if (here.empty()) return log_.info("interrupted: no replica is here, so it stops at once");
  std::string line = "interrupted: waits up to " + to_string(kFinishPatience) + " for " + here +
                     " to finish the step they are in";
  if (!away.empty()) line += "; not here: " + away;
  log_.info(line + "; Ctrl-C again ends at once");
}

void HubService::tell_of_rest(const HubStatus& status) const {
  const std::string where = status.is_started
                                ? "stopped at round " + std::to_string(status.next_round) + " of " +
                                      std::to_string(steps_)
                                : "stopped before the first step";
  const std::string again = command_to_go_on(arguments_);
  log_.info(where + (again.empty() ? "; without --dir the run cannot go on"
                                   : "; go on with `" + again + '`'));
}

}  // namespace longhaul::apps
