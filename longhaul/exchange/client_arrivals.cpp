// What comes from the hub as bulk data: means are put together with what was announced of them, a
// snapshot replaces the state.
#include <algorithm>
#include <utility>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/client_core.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {

void ClientCore::on_arrival(Arrival arrival, TimePoint now) {
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
  on_cargo(std::move(arrival), now);
}

void ClientCore::on_cargo(Arrival arrival, TimePoint now) {
  Connection& c = *connection_;
  if (arrival.id.restarts < c.restarts) return;  // of a state that is gone
  if (arrival.id.restarts > c.restarts) return c.early.push_back(std::move(arrival));
  switch (arrival.id.cargo) {
    case Cargo::kMean: {
      const RoundId round{.step = arrival.id.step, .part = arrival.id.part};
      c.arrived[round] = std::move(arrival.bytes);
      return assemble(round, now);
    }
    case Cargo::kSnapshot:
      return on_snapshot(arrival, now);
    case Cargo::kProbe:
    case Cargo::kUpdate:
      break;
  }
}

void ClientCore::on_snapshot(const Arrival& arrival, TimePoint now) {
  Connection& c = *connection_;
  if (!c.restart || c.restart->bytes() != arrival.bytes.size())
    return lose(broken("a snapshot that it did not announce"), now);
  Result<State> state = state_from_bytes(arrival.bytes);
  if (!state.ok()) return lose(broken(state.error().message), now);
  next_mean_ = round_from(c.restart->next_round());
  first_step_ = c.restart->first_step();
  step_ = std::max(step_, first_step_);
  c.restarted = c.restarts;
  c.restart.reset();
  c.is_enrolled = false;
  means_beyond_.clear();
  kept_.clear();
  setup_.is_fresh = false;
  setup_.initial.reset();
  setup_.own_until.reset();
  news_.on_restart(std::move(state).value());
  std::vector<RoundId> waiting;
  for (const auto& [round, bytes] : c.arrived) waiting.push_back(round);
  for (const RoundId round : waiting) {
    if (connection_) assemble(round, now);
  }
}

void ClientCore::assemble(RoundId round, TimePoint now) {
  Connection& c = *connection_;
  if (c.restart) return;
  const auto closed = c.closed.find(round);
  const auto bytes = c.arrived.find(round);
  if (closed == c.closed.end() || bytes == c.arrived.end()) return;
  if (!has_mean(round)) {
    Result<std::vector<WeightedPayload>> terms = terms_of(closed->second, std::move(bytes->second));
    if (!terms.ok()) return lose(terms.error(), now);
    Mean mean{.round = round, .terms = std::move(terms).value()};
    if (closed->second.has_next_plan()) {
      const Result<Plan> plan = plan_from(closed->second.next_plan());
      if (!plan.ok()) return lose(plan.error(), now);
      mean.next_plan = *plan;
    }
    kept_.erase(round);
    means_beyond_.insert(round);
    news_.on_mean(std::move(mean),
                  closed->second.has_own() ? std::optional(closed->second.own()) : std::nullopt);
  }
  c.closed.erase(round);
  c.arrived.erase(round);
  next_mean_ = std::max(next_mean_, c.closed.empty() ? c.announced_until : c.closed.begin()->first);
  means_beyond_.erase(means_beyond_.begin(), means_beyond_.lower_bound(next_mean_));
}

// All of it as one payload, or those of all contributors in replica order.
Result<std::vector<WeightedPayload>> ClientCore::terms_of(const v1::Closed& closed,
                                                          ByteBuffer bytes) {
  if (closed.elements() > setup_.elements) return broken("a mean of more than the model");
  const std::size_t elements = closed.elements() == 0 ? setup_.elements : closed.elements();
  std::vector<WeightedPayload> terms;
  const auto add_checked = [&](ByteBuffer payload, float weight) -> Status {
    Result<CheckedPayload> checked = CheckedPayload::check(std::move(payload), elements);
    if (!checked.ok()) return std::move(checked).error();
    terms.push_back({.payload = std::move(checked).value(), .weight = weight});
    return Done{};
  };
  if (closed.way() != v1::WAY_FORWARDED) {
    Status whole = add_checked(std::move(bytes), 1.0F);
    if (!whole.ok()) return std::move(whole).error();
    return terms;
  }
  ByteReader in(bytes);
  for (const v1::Contribution& one : closed.contributions()) {
    if (one.slot() == slot_) {
      const auto own = kept_.find({.step = closed.step(), .part = closed.part()});
      if (own == kept_.end() || own->second.payload.empty() ||
          own->second.payload.digest() != closed.own())
        return broken("it counts on an update that is not there");
      terms.push_back({.payload = own->second.payload, .weight = one.weight()});
      continue;
    }
    if (in.remaining() < one.bytes()) return broken("forwarded payloads end too soon");
    const ByteView payload = in.bytes(one.bytes());
    Status other = add_checked({payload.begin(), payload.end()}, one.weight());
    if (!other.ok()) return std::move(other).error();
  }
  // Nobody sent anything: a mean is never without terms.
  if (terms.empty()) terms.push_back({.payload = encode_union({}, elements, workers_)});
  return terms;
}

}  // namespace longhaul
