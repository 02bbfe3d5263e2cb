// What comes from the hub as bulk data: means are put together with what was announced of them, a
// snapshot replaces the state.
#include <algorithm>
#include <utility>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/digest.h"
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
    Result<std::vector<float>> values = values_of(closed->second, bytes->second);
    if (!values.ok()) return lose(values.error(), now);
    Mean mean{.round = round,
              .values = std::make_shared<const std::vector<float>>(std::move(values).value())};
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

Result<std::vector<float>> ClientCore::values_of(const v1::Closed& closed,
                                                 const ByteBuffer& bytes) {
  if (closed.elements() > setup_.elements) return broken("a mean of more than the model");
  std::vector<float> values(closed.elements() == 0 ? setup_.elements : closed.elements());
  if (closed.way() != v1::WAY_FORWARDED) {
    const Result<PayloadView> view = PayloadView::parse(bytes, values.size());
    if (!view.ok()) return view.error();
    const Contribution whole{.payload = &*view, .weight = 1.0F};
    sum_payloads(std::span(&whole, 1), values, workers_);
    return values;
  }
  std::vector<PayloadView> views;
  views.reserve(static_cast<std::size_t>(closed.contributions_size()));
  std::vector<Contribution> parts;
  ByteReader in(bytes);
  for (const v1::Contribution& one : closed.contributions()) {
    ByteView payload;
    if (one.slot() == slot_) {
      const auto own = kept_.find({.step = closed.step(), .part = closed.part()});
      if (own == kept_.end() || digest_of(*own->second.payload) != closed.own())
        return broken("it counts on an update that is not there");
      payload = *own->second.payload;
    } else {
      if (in.remaining() < one.bytes()) return broken("forwarded payloads end too soon");
      payload = in.bytes(one.bytes());
    }
    Result<PayloadView> view = PayloadView::parse(payload, values.size());
    if (!view.ok()) return view.error();
    views.push_back(std::move(view).value());
    parts.push_back({.payload = &views.back(), .weight = one.weight()});
  }
  sum_payloads(parts, values, workers_);
  return values;
}

}  // namespace longhaul
