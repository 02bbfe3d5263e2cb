// Bulk data from the hub: means are put together with what was announced of them, a
// snapshot replaces the state.
#include <algorithm>
#include <utility>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/client_core.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostUnchecked = 4;  // transfers; then the lanes are not read

// A mean that was announced and has come: all of it as one payload, or those of all contributors in
// replica order. `own` is the update of this replica in `slot`, or empty if it is not kept.
Result<std::vector<WeightedPayload>> terms_of(const v1::Closed& closed, ByteBuffer bytes,
                                              std::size_t model_elements, std::size_t slot,
                                              const CheckedPayload& own) {
  if (closed.elements() > model_elements)
    return ClientCore::broken("a mean of more than the model");
  const std::size_t elements = closed.elements() == 0 ? model_elements : closed.elements();
  std::vector<WeightedPayload> terms;
  const auto add_checked = [&](ByteBuffer payload, float weight) -> Status {
    CheckedPayload checked = LONGHAUL_TRY(CheckedPayload::check(std::move(payload), elements));
    terms.push_back({.payload = std::move(checked), .weight = weight});
    return Done{};
  };
  if (closed.way() != v1::WAY_FORWARDED) {
    LONGHAUL_TRY(add_checked(std::move(bytes), 1.0F));
    return terms;
  }
  ByteReader in(bytes);
  for (const v1::Contribution& one : closed.contributions()) {
    if (one.slot() == slot) {
      if (own.empty() || own.digest() != closed.own())
        return ClientCore::broken("it counts on an update that is not there");
      terms.push_back({.payload = own, .weight = one.weight()});
      continue;
    }
    if (in.remaining() < one.bytes()) return ClientCore::broken("forwarded payloads end too soon");
    const ByteView payload = in.bytes(one.bytes());
    LONGHAUL_TRY(add_checked({payload.begin(), payload.end()}, one.weight()));
  }
  // Nobody sent anything: a mean is never without terms.
  Workers alone(1);
  if (terms.empty()) terms.push_back({.payload = encode_union({}, elements, alone)});
  return terms;
}

}  // namespace

void ClientCore::read_as_told() {
  connection_->lanes.set_reading(is_reading_ && connection_->unchecked < kMostUnchecked);
}

template <typename Work, typename End>
void ClientCore::check(Work work, End end) {
  ++connection_->unchecked;
  read_as_told();
  run_errand(errands_, std::move(work),
             [this, end = std::move(end), control = connection_->control_id,
              restarts = connection_->restarts](auto result) {
               if (!connection_ || connection_->control_id != control) return;
               --connection_->unchecked;
               read_as_told();
               if (connection_->restarts == restarts) end(std::move(result));
             });
}

void ClientCore::on_arrival(Arrival arrival) {
  if (arrival.timed_bytes > 0) {
    v1::Sample& sample = *unreported_.add_down();
    sample.set_bytes(static_cast<double>(arrival.timed_bytes));
    sample.set_duration_s(arrival.duration.count());
    (void)down_.add({.bytes = static_cast<double>(arrival.timed_bytes),
                     .duration = arrival.duration,
                     .is_probe = arrival.id.cargo == Cargo::kProbe});
    largest_transfer_ = std::max(largest_transfer_, arrival.bytes.size());
  }
  if (arrival.id.cargo == Cargo::kProbe) {
    ++connection_->probes;
    return report({});
  }
  on_cargo(std::move(arrival));
}

void ClientCore::on_cargo(Arrival arrival) {
  Connection& c = *connection_;
  if (arrival.id.restarts < c.restarts) return;  // of a state that is gone
  if (arrival.id.restarts > c.restarts) return c.early.push_back(std::move(arrival));
  switch (arrival.id.cargo) {
    case Cargo::kMean: {
      const RoundId round{.step = arrival.id.step, .part = arrival.id.part};
      c.arrived[round] = std::move(arrival.bytes);
      return assemble(round);
    }
    case Cargo::kSnapshot:
      return on_snapshot(std::move(arrival));
    case Cargo::kProbe:
    case Cargo::kUpdate:
      break;
  }
}

void ClientCore::on_snapshot(Arrival arrival) {
  Connection& c = *connection_;
  if (!c.restart || c.is_snapshot_here || c.restart->bytes() != arrival.bytes.size())
    return lose(broken("a snapshot that it did not announce"), now_);
  c.is_snapshot_here = true;
  check([bytes = std::move(arrival.bytes)] { return state_from_bytes(bytes); },
        [this](Result<State>&& state) { on_state(std::move(state)); });
}

void ClientCore::on_state(Result<State>&& state) {
  Connection& c = *connection_;
  if (!state.ok()) return lose(broken(state.error().message), now_);
  next_mean_ = round_from(c.restart->next_round());
  first_step_ = c.restart->first_step();
  step_ = std::max(step_, first_step_);
  c.restarted = c.restarts;
  c.restart.reset();
  c.is_enrolled = false;
  means_beyond_.clear();
  kept_.clear();
  options_.is_fresh = false;
  options_.initial.reset();
  options_.own_until.reset();
  news_.on_restart(std::move(state).value());
  std::vector<RoundId> waiting;
  for (const auto& [round, bytes] : c.arrived) waiting.push_back(round);
  for (const RoundId round : waiting) {
    if (connection_) assemble(round);
  }
}

void ClientCore::assemble(RoundId round) {
  Connection& c = *connection_;
  if (c.restart) return;
  const auto closed = c.closed.find(round);
  const auto bytes = c.arrived.find(round);
  if (closed == c.closed.end() || bytes == c.arrived.end()) return;
  if (has_mean(round)) return forget(round);
  const auto kept = kept_.find(round);
  ByteBuffer mean = std::move(bytes->second);
  c.arrived.erase(bytes);
  check(
      [closed = closed->second, bytes = std::move(mean), elements = options_.elements, slot = slot_,
       own = kept == kept_.end() ? CheckedPayload() : kept->second.payload]() mutable {
        return terms_of(closed, std::move(bytes), elements, slot, own);
      },
      [this, round](Result<std::vector<WeightedPayload>>&& terms) {
        on_terms(round, std::move(terms));
      });
}

void ClientCore::on_terms(RoundId round, Result<std::vector<WeightedPayload>>&& terms) {
  if (!terms.ok()) return lose(terms.error(), now_);
  if (has_mean(round)) return forget(round);
  const v1::Closed& closed = connection_->closed.at(round);
  Mean mean{.round = round, .terms = std::move(terms).value()};
  if (closed.has_own()) mean.own = closed.own();
  if (closed.has_next_plan()) {
    const Result<Plan> plan = plan_from(closed.next_plan());
    if (!plan.ok()) return lose(plan.error(), now_);
    mean.next_plan = *plan;
  }
  kept_.erase(round);
  means_beyond_.insert(round);
  news_.on_mean(std::move(mean));
  forget(round);
}

// The mean of a round is there: every one before the first that is still expected is.
void ClientCore::forget(RoundId round) {
  Connection& c = *connection_;
  c.closed.erase(round);
  c.arrived.erase(round);
  next_mean_ = std::max(next_mean_, c.closed.empty() ? c.announced_until : c.closed.begin()->first);
  means_beyond_.erase(means_beyond_.begin(), means_beyond_.lower_bound(next_mean_));
}

}  // namespace longhaul
