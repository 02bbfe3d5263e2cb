#include "longhaul/sync/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/sync/step_kernels.h"

namespace longhaul {
namespace {

// A recipe that may go by layer considers it if its layers were measured, and if parts can travel
// before the local step of the whole model is made.
LayerProfile planned_parts(const EngineOptions& options) {
  const bool is_considered =
      !options.times.layers.empty() && options.local_step == LocalStep::kOurs;
  return options.recipe.is_by_layer || is_considered ? part_times(options) : LayerProfile{};
}

}  // namespace

PlannerOptions planner_options(const EngineOptions& options) {
  return {.kind = options.recipe.planner,
          .plan = options.recipe.plan,
          .may_look_ahead = can_be_foreseen(options.optimizer.kind),
          .seed = options.seed,
          .steps = options.lr.steps,
          .parts = planned_parts(options),
          .policy = options.recipe.layers};
}

std::unique_ptr<MeanCompressor> make_mean_compressor(const EngineOptions& options,
                                                     std::size_t elements, Workers& workers) {
  return std::make_unique<MeanCompressor>(
      MeanCompressor::Options{.codec = options.recipe.codec,
                              .layers = options.layers,
                              .elements = elements,
                              .keep_ratio = options.recipe.plan.keep_ratio,
                              .seed = options.seed,
                              .dense_step = options.final_average},
      workers);
}

Engine::Engine(EngineOptions options, std::span<float> parameters, Exchange& exchange,
               Workers& workers)
    : options_(std::move(options)),
      parameters_(parameters),
      exchange_(exchange),
      parts_(parts_of(options_, parameters.size())),
      workers_(workers),
      optimizer_(make_optimizer()),
      rule_(make_merge_rule(options_, parameters, parameters, *optimizer_, workers_)),
      plan_(options_.recipe.plan),
      is_ready_(parts_.size()),
      squares_(parts_.size()) {
  LONGHAUL_CHECK(check_plan(plan_, options_).ok());
  LONGHAUL_CHECK(!options_.averages_in_place || exchange_.averages_in_place());
  if (options_.final_average) {
    LONGHAUL_CHECK(plan_.merge == Merge::kLate);
    LONGHAUL_CHECK(parts_.size() == 1 || options_.averages_in_place);
    dense_ = make_codec({.kind = CodecKind::kDense, .values = ValueFormat::kFp32}, {}, workers);
  }
  codecs_ = make_codecs(parts_);
  begin_period();
}

// Nothing is kept for an optimizer that nobody asks.
std::unique_ptr<Optimizer> Engine::make_optimizer() const {
  const bool is_asked =
      options_.recipe.plan.merge != Merge::kOwnStep && options_.local_step == LocalStep::kOurs;
  return std::make_unique<Optimizer>(options_.optimizer, is_asked ? parameters_.size() : 0);
}

EngineOptions Engine::options_with(const Plan& period_plan, Merge merge) const {
  EngineOptions options = options_;
  options.recipe.plan.schedule = period_plan.schedule;
  options.recipe.plan.merge = merge;
  return options;
}

// Ratios by replica are of no use to the period's plan, and may be many. Every part is averaged at
// least once in a period: check_plan() has refused other schedules.
void Engine::begin_period() {
  period_start_ = step_;
  period_plan_ = plan_;
  period_plan_.keep_ratios.clear();
  std::vector<bool> is_averaged(parts_.size());
  for (std::size_t step = 0; step < static_cast<std::size_t>(period_plan_.period_steps); ++step) {
    for (const std::uint32_t part : parts_in_step(period_plan_, parts_.size(), step))
      is_averaged.at(part) = true;
  }
  LONGHAUL_CHECK(std::ranges::all_of(is_averaged, [](bool is_part) { return is_part; }));
  find_next_round();
}

void Engine::find_next_round() {
  next_round_ = step_;
  while (parts_in_step(period_plan_, parts_.size(), next_round_ - period_start_).empty())
    ++next_round_;
}

std::size_t Engine::next_round() const {
  const std::uint64_t final = options_.final_average.value_or(next_round_);
  return final < step_ ? next_round_ : std::min<std::uint64_t>(next_round_, final);
}

std::vector<std::uint32_t> Engine::parts_in(std::size_t step) const {
  if (options_.final_average == step) {
    std::vector<std::uint32_t> all(parts_.size());
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }
  return parts_in_step(period_plan_, parts_.size(), step - period_start_);
}

bool Engine::has_round(std::uint32_t part) const {
  return next_round() == step_ && std::ranges::binary_search(parts_in(step_), part);
}

std::vector<RoundId> Engine::next_rounds() const {
  const std::size_t step = next_round();
  std::vector<RoundId> rounds;
  for (const std::uint32_t part : parts_in(step)) rounds.push_back({.step = step, .part = part});
  return rounds;
}

// Tile by tile, so that the norm does not depend on the number of threads.
float Engine::clip_scale(std::uint32_t part, std::span<const float> gradient) {
  if (options_.clip <= 0) return 1.0F;
  std::vector<double> squares(tile_count(gradient.size()));
  run_tiles(gradient.size(), workers_, [&](std::size_t first, std::size_t count) {
    const std::span tile = gradient.subspan(first, count);
    auto sum = static_cast<double>(kernels::dot(tile, tile));
    if (std::isinf(sum)) {  // beyond a float, as squares of large gradients are
      sum = 0;
      for (const float g : tile) sum += static_cast<double>(g) * static_cast<double>(g);
    }
    squares[first / kTileElements] = sum;
  });
  squares_[part] = std::accumulate(squares.begin(), squares.end(), 0.0);
  const double norm = std::max(std::sqrt(squares_[part]), norm_before_);
  return norm <= options_.clip ? 1.0F : static_cast<float>(options_.clip / norm);
}

TakeOptions Engine::request_of(std::uint32_t part) const {
  return {.keep_ratio = plan_.keep_ratio_of(options_.slot),
          .seed = seed_of_round(options_.seed, step_, part)};
}

Codec& Engine::codec_of(std::uint32_t part) const {
  return is_final_average() ? *dense_ : *codecs_.at(part);
}

ByteBuffer Engine::advance(std::uint32_t number, std::span<const float> gradient, float scale) {
  const Part part = parts_.at(number);
  TakeOptions request = request_of(number);
  request.increment = gradient;
  kernels::OptimizerStep step;
  if (has_own_step()) {
    step = optimizer_->begin(part.first, lr(), scale);
    request.move = [&](std::size_t first, std::size_t count) {
      optimizer_->step(step, part.first + first, part.of(parameters_).subspan(first, count),
                       gradient.subspan(first, count));
    };
    request.preview = [&](std::size_t first, std::span<float> out) {
      optimizer_->preview(step, part.first + first, out, gradient.subspan(first, out.size()));
    };
  }
  const bool is_taken = has_round(number) && !options_.averages_in_place;
  if (is_taken) return rule_->take(part, codec_of(number), std::move(request));
  LONGHAUL_CHECK(has_own_step() || options_.averages_in_place);
  if (has_own_step()) run_tiles(part.count, workers_, request.move);
  return {};
}

ByteBuffer Engine::take_rest(std::uint32_t part) {
  if ((plan_.period_steps == 1 && !is_final_average()) || !has_round(part)) return {};
  if (options_.averages_in_place) return {};
  return rule_->take(parts_.at(part), codec_of(part), request_of(part));
}

void Engine::count_unusable() {
  if (std::exchange(is_step_unusable_, true)) return;
  ++non_finite_steps_;
  ++non_finite_in_a_row_;
}

bool Engine::is_half_done() const {
  return std::ranges::all_of(is_ready_, [](bool is_ready) { return is_ready; });
}

void Engine::begin_step() {
  LONGHAUL_CHECK(std::ranges::none_of(is_ready_, [](bool is_ready) { return is_ready; }));
  mean_gradient_.clear();
}

void Engine::ready(std::uint32_t part, std::span<float> gradient) {
  LONGHAUL_CHECK(!is_ready_.at(part));
  LONGHAUL_CHECK_EQ(gradient.size(), parts_[part].count);
  LONGHAUL_CHECK(options_.local_step == LocalStep::kOurs || !has_local_steps(plan_.merge));
  const float largest = largest_magnitude(gradient, workers_);
  const float scale = std::isfinite(largest) ? clip_scale(part, gradient) : 1.0F;
  const bool is_usable =
      largest * scale < kAbsurd &&
      (!has_own_step() || optimizer_->accept(parts_[part].first, largest * scale, lr()));
  if (is_usable) {
    if (scale != 1.0F && !has_own_step()) {
      for (float& g : gradient) g *= scale;
    }
    send(part, advance(part, gradient, scale), gradient);
  } else {
    std::ranges::fill(gradient, 0.0F);
    send(part, take_rest(part), gradient);
    count_unusable();
  }
  part_is_ready(part, true);
}

void Engine::ready_moved(std::uint32_t part) {
  LONGHAUL_CHECK(!is_ready_.at(part));
  LONGHAUL_CHECK(options_.local_step == LocalStep::kCallers && has_local_steps(plan_.merge));
  if (has_round(part)) {
    ByteBuffer payload = rule_->take(parts_[part], codec_of(part), request_of(part));
    if (payload.empty()) count_unusable();
    send(part, std::move(payload));
  }
  part_is_ready(part, next_round() == step_);
}

void Engine::part_is_ready(std::uint32_t part, bool is_checked) {
  is_ready_[part] = true;
  if (!is_checked || is_step_unusable_ || !is_half_done()) return;
  non_finite_in_a_row_ = 0;
  if (parts_.size() > 1)
    norm_before_ = std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0));
}

void Engine::submit(std::span<float> gradient) {
  LONGHAUL_CHECK_EQ(gradient.size(), parameters_.size());
  begin_step();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) ready(i, parts_[i].of(gradient));
}

void Engine::submit_moved() {
  begin_step();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) ready_moved(i);
}

void Engine::submit_nothing() {
  begin_step();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    send(i, take_rest(i));
    part_is_ready(i, false);
  }
}

void Engine::sit_out() {
  begin_step();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    if (has_round(i)) open_round(i, {});
    part_is_ready(i, false);
  }
}

void Engine::send(std::uint32_t part, ByteBuffer payload, std::span<float> gradient) {
  if (!has_round(part)) return;
  Update update{.round = {.step = step_, .part = part}, .elements = parts_[part].count};
  if (options_.averages_in_place) {
    update.in_place = has_own_step() ? parts_[part].of(parameters_) : gradient;
    LONGHAUL_CHECK_EQ(update.in_place.size(), update.elements);
  } else {
    update.payload = CheckedPayload::of_sealed(std::move(payload), update.elements);
  }
  open_round(part, update.payload);
  exchange_.submit(std::move(update));
}

void Engine::open_round(std::uint32_t part, const CheckedPayload& payload) {
  const RoundId round{.step = step_, .part = part};
  rule_->sent(round, payload);
  in_flight_.insert(std::ranges::upper_bound(in_flight_, round), round);
}

// Values from elsewhere may be anything.
Status Engine::check_mean(const Mean& mean, RoundId round) const {
  const std::string name = "mean of step " + std::to_string(round.step);
  if (mean.round != round || mean.elements() != parts_.at(round.part).count)
    return Error{ErrorCode::kCorruptPayload, name + ": of another part of the model"};
  if (!mean.returned.empty() && mean.returned.view().elements() != mean.elements())
    return Error{ErrorCode::kCorruptPayload, name + ": an update of another part comes back"};
  if (!mean.next_plan) return Done{};
  Status plan = check_plan(*mean.next_plan, options_);
  if (plan.ok()) return plan;
  return Error{ErrorCode::kCorruptPayload, name + ": " + plan.error().message};
}

// The oldest of its part.
Status Engine::merge_round(RoundId round, Deadline deadline) {
  const Mean mean = LONGHAUL_TRY(exchange_.collect(round, deadline));
  LONGHAUL_TRY(check_mean(mean, round));
  if (!mean.returned.empty())
    rule_->take_back(step_, round, parts_.at(round.part), mean.returned.view());
  in_flight_.erase(std::ranges::lower_bound(in_flight_, round));
  merge(mean);
  if (mean.next_plan && (!next_plan_ || next_plan_round_ < round)) {
    next_plan_ = mean.next_plan;
    next_plan_round_ = round;
  }
  return Done{};
}

void Engine::merge(const Mean& mean) {
  const Part& part = parts_.at(mean.round.part);
  if (options_.local_step == LocalStep::kCallers && !has_local_steps(plan_.merge)) {
    mean_gradient_.resize(parameters_.size());
    const std::span out = part.of(std::span(mean_gradient_));
    for_each_tile(mean, workers_, [&](std::size_t first, std::span<const float> values) {
      kernels::add_scaled(values, 1.0F, out.subspan(first, values.size()));
    });
  } else {
    rule_->merge(step_, part, mean);
  }
  Codec& codec = *codecs_.at(mean.round.part);
  if (codec.shares_state()) codec.learn(mean.values ? *mean.values : mean.to_vector());
}

Status Engine::merge_before(std::uint32_t part, Deadline deadline) {
  LONGHAUL_CHECK(is_ready_.at(part));
  for (;;) {
    const auto oldest = std::ranges::find(in_flight_, part, &RoundId::part);
    if (oldest == in_flight_.end() || !is_due(*oldest)) return Done{};
    LONGHAUL_TRY(merge_round(*oldest, deadline));
  }
}

// By step and part: if a mean is missing, no round behind it is merged.
Status Engine::end_step(Deadline deadline) {
  LONGHAUL_CHECK(is_half_done());
  while (!in_flight_.empty() && is_due(in_flight_.front())) {
    LONGHAUL_TRY(merge_round(in_flight_.front(), deadline));
  }
  go_on();
  return Done{};
}

bool Engine::is_last_of_period() const {
  return step_ + 1 == period_start_ + static_cast<std::size_t>(period_plan_.period_steps);
}

void Engine::go_on() {
  const bool is_period_over = is_last_of_period();
  ++step_;
  // Announced with a mean that all replicas merge in the same step, so all change at the same step.
  const auto is_for_now = [&](const Plan& plan) {
    return !needs_other_parts(plan) || (is_period_over && in_flight_.empty());
  };
  if (next_plan_ && is_for_now(*next_plan_)) change_plan(*std::exchange(next_plan_, std::nullopt));
  is_ready_.assign(parts_.size(), false);
  is_step_unusable_ = false;
  if (is_period_over) begin_period();
  if (next_round_ < step_) find_next_round();
  merges_all_ = next_plan_ && is_last_of_period();
  if (options_.computes) rule_->place(step_);
}

// Another period or schedule holds from the next period on, unless there are no more local steps.
void Engine::change_plan(const Plan& plan) {
  const bool has_other_parts = needs_other_parts(plan);
  if (has_other_parts && plan_.merge == Merge::kLate) change_parts(plan);
  if (plan.merge != plan_.merge) {
    rule_ = rule_->become(plan.merge, step_);
    LONGHAUL_CHECK(rule_ != nullptr);  // check_plan() has seen to that
    plan_.merge = plan.merge;
  }
  if (has_other_parts && needs_other_parts(plan)) change_parts(plan);
  plan_ = plan;
  if (!has_local_steps(plan_.merge)) begin_period();
}

Status Engine::drain(Deadline deadline) {
  while (!in_flight_.empty()) {
    LONGHAUL_TRY(merge_round(in_flight_.front(), deadline));
  }
  if (options_.computes) rule_->place(step_);
  // Everything is told: what separates the replica from the shared model is rounding.
  const bool stores_shared = options_.computes && !options_.averages_in_place;
  if (stores_shared && options_.final_average && step_ > *options_.final_average)
    std::ranges::copy(shared(), parameters_.begin());
  return Done{};
}

}  // namespace longhaul
