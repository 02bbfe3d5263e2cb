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

// Of a period of that plan which begins with `first`.
std::size_t last_of_period(std::size_t first, const Plan& plan) {
  LONGHAUL_CHECK(plan.period_steps == 1 || (plan.period_steps > 1 && has_local_steps(plan.merge)));
  return first + static_cast<std::size_t>(plan.period_steps) - 1;
}

}  // namespace

std::unique_ptr<MeanCompressor> make_mean_compressor(const EngineSetup& setup, std::size_t elements,
                                                     Workers& workers) {
  return std::make_unique<MeanCompressor>(
      MeanCompressor::Setup{.codec = setup.recipe.codec,
                            .layers = setup.layers,
                            .elements = elements,
                            .keep_ratio = setup.recipe.plan.keep_ratio,
                            .seed = setup.seed,
                            .dense_step = setup.final_average},
      workers);
}

Engine::Engine(EngineSetup setup, std::span<float> parameters, Exchange& exchange, Workers& workers)
    : setup_(std::move(setup)),
      parameters_(parameters),
      exchange_(exchange),
      parts_(split_into_parts(setup_.layers, parameters.size(),
                              static_cast<std::size_t>(setup_.recipe.local.fragments))),
      rule_(make_merge_rule(setup_.recipe.plan.merge, setup_.optimizer, parameters,
                            setup_.recipe.local, parts_)),
      residual_(parameters.size(), 0.0F),
      plan_(setup_.recipe.plan) {
  LONGHAUL_CHECK_GE(plan_.delay_steps, 0);
  const std::size_t period = last_of_period(0, plan_) + 1;
  LONGHAUL_CHECK_LE(parts_.size(), period);
  if (setup_.final_average) {
    LONGHAUL_CHECK(parts_.size() == 1 && plan_.merge == Merge::kLate);
    dense_ = make_codec({.kind = CodecKind::kDense, .values = ValueFormat::kFp32}, {}, workers);
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    fragments_.push_back(
        {.part = parts_[i],
         .codec = make_codec(setup_.recipe.codec, layers_of(parts_[i], setup_.layers), workers),
         .next_round = (i + 1) * period / parts_.size() - 1});
  }
}

std::size_t Engine::next_round() const {
  const std::size_t next =
      std::ranges::min_element(fragments_, {}, &Fragment::next_round)->next_round;
  const std::uint64_t final = setup_.final_average.value_or(next);
  return final < step_ ? next : std::min(next, final);
}

std::vector<RoundId> Engine::rounds_of_step() const {
  std::vector<RoundId> rounds;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (has_round(fragments_[i]))
      rounds.push_back({.step = step_, .part = static_cast<std::uint32_t>(i)});
  }
  return rounds;
}

ByteBuffer Engine::take(Fragment& fragment, std::span<const float> update) {
  const std::span<float> residual = fragment.part.of(std::span(residual_));
  const auto increment = update.empty() ? update : fragment.part.of(update);
  if (!has_round(fragment)) {
    kernels::feed(residual, {.increment = increment});
    return {};
  }
  Codec& codec = is_final_average() ? *dense_ : *fragment.codec;
  ByteBuffer payload = codec.take({.residual = residual,
                                   .increment = increment,
                                   .keep_ratio = plan_.keep_ratio,
                                   .seed = seed_of_round(setup_.seed, step_)});
  keep_residual(residual);
  return payload;
}

void Engine::keep_residual(std::span<float> residual) {
  if (!rule_->keeps_residual()) {
    std::ranges::fill(residual, 0.0F);
    return;
  }
  const float kept = setup_.recipe.keeps_residual ? setup_.recipe.residual_decay : 0.0F;
  if (kept == 1.0F) return;
  leaked_ +=
      static_cast<double>(1.0F - kept) * static_cast<double>(kernels::sum_of_magnitudes(residual));
  kernels::feed(residual, {.decay = kept});
}

bool Engine::take_update(std::span<float> gradient, Payloads& payloads) {
  if (check_finite(gradient).ok()) clip_norm(gradient, setup_.clip);
  if (!is_usable(gradient)) {
    std::ranges::fill(gradient, 0.0F);
    return false;
  }
  const std::span<const float> update = rule_->update_of(now(), gradient, parameters_);
  const bool has_stepped = update.data() != gradient.data();
  if (has_stepped && !(is_usable(update) && is_usable(parameters_))) {
    rule_->place(now(), residual_, parameters_);
    return false;
  }
  for (std::size_t i = 0; i < fragments_.size(); ++i) payloads[i] = take(fragments_[i], update);
  rule_->accept(parameters_);
  return true;
}

void Engine::take_rest(Payloads& payloads) {
  if ((plan_.period_steps == 1 && !is_final_average()) || next_round() != step_) return;
  const std::span<const float> update = rule_->update_without_gradient(now());
  for (std::size_t i = 0; i < fragments_.size(); ++i) payloads[i] = take(fragments_[i], update);
  rule_->accept(parameters_);
}

void Engine::submit(std::span<float> gradient) {
  LONGHAUL_CHECK_EQ(gradient.size(), parameters_.size());
  LONGHAUL_CHECK(!is_half_done());
  Payloads payloads(fragments_.size());
  if (take_update(gradient, payloads)) {
    non_finite_in_a_row_ = 0;
  } else {
    take_rest(payloads);
    ++non_finite_steps_;
    ++non_finite_in_a_row_;
  }
  submit_messages(std::move(payloads));
}

void Engine::submit_nothing() {
  LONGHAUL_CHECK(!is_half_done());
  Payloads payloads(fragments_.size());
  take_rest(payloads);
  submit_messages(std::move(payloads));
}

void Engine::sit_out() {
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (has_round(fragments_[i])) open_round(i, {});
  }
  finish_first_half();
}

void Engine::submit_messages(Payloads payloads) {
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    if (!has_round(fragments_[i])) continue;
    const RoundId round = open_round(i, payloads[i]);
    exchange_.submit(
        {.round = round, .elements = fragments_[i].part.count, .payload = std::move(payloads[i])});
  }
  finish_first_half();
}

RoundId Engine::open_round(std::size_t fragment, ByteView payload) {
  LONGHAUL_CHECK(!is_half_done());
  const RoundId round{.step = step_, .part = static_cast<std::uint32_t>(fragment)};
  rule_->sent(now(), round, payload);
  in_flight_.push_back(round);
  return round;
}

void Engine::finish_first_half() {
  LONGHAUL_CHECK(!is_half_done());
  is_half_done_ = true;
}

// What comes from elsewhere may be anything.
Status Engine::check_mean(const Mean& mean, RoundId round) const {
  const std::string name = "mean of step " + std::to_string(round.step);
  if (mean.round != round || mean.values->size() != parts_.at(round.part).count)
    return Error{ErrorCode::kCorruptPayload, name + ": of another part of the model"};
  if (!mean.next_plan) return Done{};
  Status plan = check_plan(*mean.next_plan, setup_);
  if (plan.ok()) return plan;
  return Error{ErrorCode::kCorruptPayload, name + ": " + plan.error().message};
}

Status Engine::merge_oldest(Deadline deadline) {
  const RoundId round = in_flight_.front();
  const Result<Mean> mean = exchange_.collect(round, deadline);
  if (!mean.ok()) return mean.error();
  Status fits = check_mean(*mean, round);
  if (!fits.ok()) return fits;
  Status taken_back = take_back(*mean);
  if (!taken_back.ok()) return taken_back;
  in_flight_.pop_front();
  rule_->merge(now(), parts_.at(round.part), *mean, parameters_);
  fragments_.at(round.part).codec->learn(*mean->values);
  if (mean->next_plan) next_plan_ = mean->next_plan;
  return Done{};
}

Status Engine::take_back(const Mean& mean) {
  if (mean.returned.empty()) return Done{};
  const Part& part = parts_.at(mean.round.part);
  Result<PayloadView> message = PayloadView::parse(mean.returned, part.count);
  if (!message.ok()) {
    return std::move(message).error().within("returned update of step " +
                                             std::to_string(mean.round.step));
  }
  rule_->take_back(now(), mean.round, *message, part.of(std::span(residual_)));
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
  for (Fragment& fragment : fragments_) {
    if (fragment.next_round < step_) fragment.next_round = last_of_period(step_, plan_);
  }
  if (setup_.computes) rule_->place(now(), residual_, parameters_);
  return Done{};
}

// Another period holds from the next one on, unless there are no more local steps.
void Engine::change_plan(const Plan& plan) {
  if (plan.merge != plan_.merge) rule_->change_to(plan.merge, now(), residual_);
  plan_ = plan;
  if (has_local_steps(plan_.merge)) return;
  LONGHAUL_CHECK_EQ(fragments_.size(), std::size_t{1});
  fragments_[0].next_round = step_;
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
