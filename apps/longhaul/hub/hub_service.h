// A hub that runs: what it tells, and when it ends.
#pragma once

#include <memory>
#include <optional>

#include "apps/longhaul/hub/hub_options.h"
#include "longhaul/base/log.h"
#include "longhaul/hub/hub.h"
#include "longhaul/hub/hub_watcher.h"
#include "longhaul/hub/status_pace.h"
#include "longhaul/sync/pacer.h"

namespace longhaul::apps {

// Serves until every replica has finished, or someone interrupts.
class HubService {
 public:
  // `steps`: of the run. Hub and arguments outlive it, and hub_options() accepted the arguments.
  HubService(Hub& hub, const HubCommandOptions& arguments, v1::Task task, std::uint64_t steps,
             std::shared_ptr<Lines> lines)
      : hub_(hub),
        arguments_(arguments),
        task_(std::move(task)),
        steps_(steps),
        lines_(std::move(lines)),
        pace_(parse_duration(arguments.status_every).value()),
        log_(hub_log(arguments)) {}

  // An error is the hub's: nothing goes on. False: it was interrupted.
  Result<bool> run();

 private:
  void note_strangers();
  void tell(const HubStatus& status, bool is_last);
  // How the run ended: an event, or a table on standard output.
  void tell_end(const HubStatus& status) const;
  [[nodiscard]] bool is_given_up() const;
  // After an interrupt: the first names the replicas it waits for, the second says how to go on.
  void tell_of_stop(const HubStatus& status) const;
  void tell_of_rest(const HubStatus& status) const;

  Hub& hub_;
  const HubCommandOptions& arguments_;
  v1::Task task_;
  std::uint64_t steps_;
  std::shared_ptr<Lines> lines_;  // shared with the watcher
  StatusPace pace_;               // of the `status` events, if `lines_` takes any
  Log log_;
  Clock clock_;
  Pacer pacer_;
  std::optional<TimePoint> asked_;  // to finish
  std::uint64_t strangers_ = 0;
  TimePoint told_;
  std::uint64_t told_round_ = 0;
};

}  // namespace longhaul::apps
