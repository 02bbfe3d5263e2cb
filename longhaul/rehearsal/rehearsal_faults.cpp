// Injects faults into the processes and links of a rehearsal.
#include <csignal>

#include "longhaul/rehearsal/rehearsal.h"

namespace longhaul {

// Events that a process had sent before it was killed count.
Status Rehearsal::begin(const Fault& fault) {
  Seat& seat = seats_[fault.slot];
  switch (fault.kind) {
    case FaultKind::kKillReplica:
      seat.process->kill();
      read(*seat.process, [&](const auto& event) { on_replica(fault.slot, event); });
      seat.process.reset();
      break;
    case FaultKind::kStopReplica:
      seat.process->signal(SIGSTOP);
      break;
    case FaultKind::kCutLink:
      seat.relay->cut();
      break;
    case FaultKind::kDropLink:
      seat.relay->drop_connections();
      break;
    case FaultKind::kKillHub:
      hub_->kill();
      read(*hub_, [this](const auto& event) { on_hub(event); });
      hub_.reset();
      view_.status = nullptr;
      audit_.on_new_hub();
      break;
  }
  return Done{};
}

Status Rehearsal::end(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kKillReplica:
      return start_replica(fault.slot);
    case FaultKind::kStopReplica:
      seats_[fault.slot].process->signal(SIGCONT);
      return Done{};
    case FaultKind::kCutLink:
      seats_[fault.slot].relay->restore();
      return Done{};
    case FaultKind::kDropLink:
      return Done{};
    case FaultKind::kKillHub:
      return start_hub();
  }
  return Done{};
}

}  // namespace longhaul
