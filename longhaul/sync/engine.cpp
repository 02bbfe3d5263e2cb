#include "longhaul/sync/engine.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

double norm_of(std::span<const float> gradient) {
  double squares = kernels::dot(gradient, gradient);
  if (std::isinf(squares)) {  // beyond a float, as squares of large gradients are
    squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * g;
  }
  return std::sqrt(squares);
}

void clip_norm(std::span<float> gradient, double largest) {
  if (largest <= 0) return;
  const double norm = norm_of(gradient);
  if (norm <= largest) return;
  const auto scale = static_cast<float>(largest / norm);
  for (float& g : gradient) g *= scale;
}

// Values beyond it are as good as infinite, and sums of residuals stay far from overflow below it.
constexpr float kAbsurd = 1e30F;

bool is_usable(std::span<const float> values) {
  bool all = true;
  for (const float v : values) all &= std::abs(v) < kAbsurd;  // false for NaN too
  return all;
}

// Different for every step of every seed: seeds of one study must not draw the same things.
std::uint64_t seed_of(std::uint64_t seed, std::size_t step) {
  return seed * 0x9E3779B97F4A7C15U + step;
}

// Of a period of that plan which begins with `first`.
std::size_t last_of_period(std::size_t first, const Plan& plan) {
  LONGHAUL_CHECK(plan.period_steps == 1 || (plan.period_steps > 1 && has_local_steps(plan.merge)));
  return first + static_cast<std::size_t>(plan.period_steps) - 1;
}

}  // namespace

Engine::Engine(EngineSetup setup, std::span<float> parameters, Exchange& exchange, Workers& workers)
    : setup_(std::move(setup)),
      parameters_(parameters),
      exchange_(exchange),
      codec_(make_codec(setup_.recipe.codec, setup_.layers, workers)),
      rule_(make_merge_rule(setup_.recipe.plan.merge, setup_.optimizer, parameters,
                            setup_.recipe.local)),
      residual_(parameters.size(), 0.0F),
      plan_(setup_.recipe.plan),
      next_round_(last_of_period(0, plan_)) {
  LONGHAUL_CHECK_GE(plan_.delay_steps, 0);
}

ByteBuffer Engine::take(std::span<const float> update) {
  if (!has_round()) {
    kernels::feed(residual_, {.increment = update});
    return {};
  }
  ByteBuffer payload = codec_->take({.residual = residual_,
                                     .increment = update,
                                     .keep_ratio = plan_.keep_ratio,
                                     .seed = seed_of(setup_.seed, step_)});
  if (!setup_.recipe.keeps_residual || plan_.merge == Merge::kAnchor)
    std::ranges::fill(residual_, 0.0F);
  if (setup_.recipe.residual_decay < 1.0F) {
    for (float& e : residual_) e *= setup_.recipe.residual_decay;
  }
  return payload;
}

bool Engine::take_update(std::span<float> gradient, ByteBuffer& payload) {
  if (check_finite(gradient).ok()) clip_norm(gradient, setup_.clip);
  if (!is_usable(gradient)) {
    std::ranges::fill(gradient, 0.0F);
    return false;
  }
  const std::span<const float> update = rule_->update_of(now(), gradient, parameters_);
  if (update.data() != gradient.data() && !is_usable(update)) return false;
  payload = take(update);
  return true;
}

void Engine::submit(std::span<float> gradient) {
  LONGHAUL_CHECK_EQ(gradient.size(), parameters_.size());
  LONGHAUL_CHECK(!is_half_done());
  ByteBuffer payload;
  if (take_update(gradient, payload)) {
    non_finite_in_a_row_ = 0;
  } else {
    ++non_finite_steps_;
    ++non_finite_in_a_row_;
  }
  submit_message(std::move(payload));
}

void Engine::submit_nothing() { submit_message({}); }

void Engine::sit_out() {
  if (has_round()) open_round({});
  finish_first_half();
}

void Engine::submit_message(ByteBuffer payload) {
  if (has_round()) {
    const RoundId round = open_round(payload);
    exchange_.submit(
        {.round = round, .elements = parameters_.size(), .payload = std::move(payload)});
  }
  finish_first_half();
}

RoundId Engine::open_round(ByteView payload) {
  LONGHAUL_CHECK(!is_half_done());
  const RoundId round{.step = step_};
  rule_->sent(now(), round, payload);
  in_flight_.push_back(round);
  return round;
}

void Engine::finish_first_half() {
  LONGHAUL_CHECK(!is_half_done());
  is_half_done_ = true;
}

Status Engine::merge_oldest(Deadline deadline) {
  const RoundId round = in_flight_.front();
  const Result<Mean> mean = exchange_.collect(round, deadline);
  if (!mean.ok()) return mean.error();
  LONGHAUL_CHECK(mean->round == round);
  Status taken_back = take_back(*mean);
  if (!taken_back.ok()) return taken_back;
  in_flight_.pop_front();
  rule_->merge(now(), {.first = 0, .count = parameters_.size()}, *mean, parameters_);
  if (mean->next_plan) next_plan_ = mean->next_plan;
  return Done{};
}

Status Engine::take_back(const Mean& mean) {
  if (mean.returned.empty()) return Done{};
  Result<PayloadView> message = PayloadView::parse(mean.returned, parameters_.size());
  if (!message.ok()) {
    return std::move(message).error().within("returned update of step " +
                                             std::to_string(mean.round.step));
  }
  rule_->take_back(now(), mean.round, *message, residual_);
  return Done{};
}

Status Engine::merge_due(Deadline deadline) {
  const auto delay = static_cast<std::uint64_t>(plan_.delay_steps);
  while (!in_flight_.empty() && in_flight_.front().step + delay <= step_) {
    Status merged = merge_oldest(deadline);
    if (!merged.ok()) return merged;
  }
  ++step_;
  is_half_done_ = false;
  // Announced with a mean that all replicas merge in the same step, so all change at the same step.
  if (next_plan_) change_plan(*std::exchange(next_plan_, std::nullopt));
  if (next_round_ < step_) next_round_ = last_of_period(step_, plan_);
  rule_->place(now(), residual_, parameters_);
  return Done{};
}

// Another period holds from the next one on, unless there are no more local steps.
void Engine::change_plan(const Plan& plan) {
  if (plan.merge != plan_.merge) rule_->change_to(plan.merge, now(), residual_);
  plan_ = plan;
  if (!has_local_steps(plan_.merge)) next_round_ = step_;
}

Status Engine::drain(Deadline deadline) {
  while (!in_flight_.empty()) {
    Status merged = merge_oldest(deadline);
    if (!merged.ok()) return merged;
  }
  rule_->place(now(), residual_, parameters_);
  return Done{};
}

}  // namespace longhaul
