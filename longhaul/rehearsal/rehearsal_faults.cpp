// Injects faults into the processes and links of a rehearsal.
#include <csignal>

#include "longhaul/rehearsal/rehearsal.h"

namespace longhaul {

Status Rehearsal::begin(const Fault& fault) {
  Seat& seat = seats_[fault.slot];
  switch (fault.kind) {
    case FaultKind::kKillReplica:
      kill_replica(fault.slot);
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
      kill_hub();
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

// Events that it had sent count.
void Rehearsal::kill_replica(std::size_t slot) {
  Seat& seat = seats_[slot];
  seat.process->kill();
  read(*seat.process, [this, slot](const auto& event) { on_replica(slot, event); });
  seat.process.reset();
}

void Rehearsal::kill_hub() {
  hub_->kill();
  read(*hub_, [this](const auto& event) { on_hub(event); });
  hub_.reset();
  view_.status = nullptr;
  audit_.on_new_hub();
}

}  // namespace longhaul
