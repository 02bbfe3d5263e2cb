// HubCore: how streams become members of a run, and how the run starts.
#include <utility>

#include "longhaul/hub/hub_core.h"
#include "longhaul/hub/status_report.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostTransfers = 1100;  // as many rounds, and a probe
constexpr std::size_t kPendingOverhead = std::size_t{64} << 20U;

}  // namespace

void HubCore::on_first_frame(StreamId id, const Frame& frame) {
  if (frame.has_join()) return on_join(id, frame.join());
  if (frame.has_open_lane()) return on_lane(id, frame.open_lane());
  if (frame.has_open_probe()) return desk_.seat_guest(id, frame.open_probe());
  Frame answer;
  if (frame.has_ask()) {
    const v1::Ask& ask = frame.ask();
    if (!desk_.admits(id, ask.protocol(), ask.name(), ask.token())) return;
    *answer.mutable_task() = options_.task;
  } else if (frame.has_ask_status()) {
    const v1::AskStatus& ask = frame.ask_status();
    if (!desk_.admits(id, ask.protocol(), ask.name(), ask.token())) return;
    *answer.mutable_status_report() = report_of(status(), options_.task);
  } else {
    return desk_.turn_away(id, "a connection: it does not begin as the protocol does");
  }
  desk_.answer(id, std::move(answer));
}

void HubCore::on_join(StreamId id, const v1::Join& join) {
  const std::string& name = join.name();
  const std::optional<std::size_t> slot = desk_.place_for(id, join, end_, training_.get());
  if (!slot) return;
  if (const Status kept = roster_.enter(name, *slot); !kept.ok()) {
    fail(kept.error());
    return desk_.refuse(id, name, {ErrorCode::kClosed, kept.error().message});
  }
  if (Peer* earlier = roster_.peer_of(name)) drop(*earlier, "it connected anew");
  const std::size_t most = most_transfer_bytes(join.elements());
  Lanes lanes({.most_bytes = most,
               .most_transfers = kMostTransfers,
               .most_pending_bytes = 4 * most + kPendingOverhead},
              options_.rate);
  desk_.seat(id, join, *slot, std::move(lanes), training_.get());
}

void HubCore::on_lane(StreamId id, const v1::OpenLane& lane) {
  Peer* peer = desk_.seat_lane(id, lane);
  if (peer == nullptr || !peer->is_connected() || std::exchange(peer->is_announced, true)) return;
  tell_of(*peer, "is here");
  if (links_.wants_first_probe(peer->name())) links_.send_first_probe(*peer);
  if (training_) {
    courier_.take_in(*peer);
  } else if (may_start()) {
    first_model_.ask_for_values(roster_, now_);
  }
  start_if_ready();
}

void HubCore::start_if_ready() {
  if (!may_start() || !first_model_.is_here()) return;
  const Conditions links = links_.of_starters(roster_);
  if (links.size() < options_.start_with) return;
  TrainingOptions options = options_.training;
  options.engine.layers = first_model_.layers();
  is_starting_ = true;
  run_errand(
      errands_,
      [options = std::move(options), initial = first_model_.take(), links,
       &workers = workers_]() mutable {
        return ModelKeeper::start(options, std::move(initial), links, workers);
      },
      [this, replicas = links.size()](Result<std::unique_ptr<ModelKeeper>>&& keeper) {
        on_started(std::move(keeper), replicas);
      });
}

void HubCore::on_started(Result<std::unique_ptr<ModelKeeper>>&& keeper, std::size_t replicas) {
  is_starting_ = false;
  if (status_.failure || end_.is_asked()) return first_model_.want_again();
  if (!keeper.ok()) return fail(keeper.error());
  begin(std::move(keeper).value());
  const Decision& first = training_->first_decision();
  status_.reason = first.reason;
  log_.info("starts with " + std::to_string(replicas) + " replicas: " + status_.reason);
  if (options_.watcher)
    options_.watcher({.outcome = {.decision = first}, .time = now_, .is_start = true});
  for (const auto& [control, peer] : roster_.peers()) {
    if (peer->is_connected()) courier_.take_in(*peer);
  }
}

void HubCore::begin(std::unique_ptr<ModelKeeper> keeper) {
  training_ = std::make_unique<Training>(std::move(keeper));
  gate_.serve(training_.get());
  courier_.serve(training_.get());
  end_.expect(options_.training.steps, end_.cause());
}

// A replica that goes before the start leaves nothing behind: its slot is free, and so is the
// choice of the model if nobody else is here.
void HubCore::forget_who_never_started() {
  if (!may_start()) return;
  const std::vector<std::string> gone = roster_.forget_absent();
  if (gone.empty()) return;
  for (const std::string& name : gone) links_.forget(name);
  if (roster_.replicas().empty()) first_model_.forget();
  if (const Status kept = roster_.keep(); !kept.ok()) fail(kept.error());
}

}  // namespace longhaul
