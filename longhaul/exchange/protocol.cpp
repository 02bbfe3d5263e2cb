#include "longhaul/exchange/protocol.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace longhaul {
namespace {

constexpr std::uint64_t kLeastProbeChunk = 1024;
constexpr std::uint64_t kMostProbeChunk = std::uint64_t{256} * 1024;
constexpr std::uint64_t kChunksOfAProbe = 16;

// Made once: probes must not be slow to make.
const std::string& noise() {
  static const std::string kNoise = [] {
    std::mt19937_64 random(1);  // NOLINT(*-msc51-cpp): it need not surprise anyone
    std::string bytes(kMostProbeChunk, '\0');
    for (char& one : bytes) one = static_cast<char>(random());
    return bytes;
  }();
  return kNoise;
}

bool is_shape_of(const Layer& layer) {
  if (layer.shape.empty()) return true;
  std::size_t count = 1;
  for (const std::int64_t side : layer.shape) {
    if (side < 1 || static_cast<std::size_t>(side) > layer.count / count) return false;
    count *= static_cast<std::size_t>(side);
  }
  return count == layer.count;
}

}  // namespace

v1::Frame probe_chunk(std::uint64_t total, std::uint64_t offset) {
  const std::uint64_t size = std::min(
      std::clamp(total / kChunksOfAProbe, kLeastProbeChunk, kMostProbeChunk), total - offset);
  v1::Frame frame;
  v1::Chunk& chunk = *frame.mutable_chunk();
  chunk.set_cargo(v1::CARGO_PROBE);
  chunk.set_total(total);
  chunk.set_offset(offset);
  chunk.set_data(noise().data(), size);
  return frame;
}

v1::RoundId to_message(RoundId round) {
  v1::RoundId message;
  message.set_step(round.step);
  message.set_part(round.part);
  return message;
}

RoundId round_from(const v1::RoundId& message) {
  return {.step = message.step(), .part = message.part()};
}

v1::Attendance to_message(const Attendance& attendance) {
  v1::Attendance message;
  message.set_since(attendance.since);
  for (const StepRange& range : attendance.sat_out) {
    message.add_sat_out(range.first);
    message.add_sat_out(range.last);
  }
  return message;
}

Result<Attendance> attendance_from(const v1::Attendance& message, std::uint64_t step) {
  Attendance attendance{.since = message.since()};
  for (int i = 0; i + 1 < message.sat_out_size(); i += 2)
    attendance.sat_out.push_back({.first = message.sat_out(i), .last = message.sat_out(i + 1)});
  if (message.sat_out_size() % 2 == 0 && attendance.can_be_of(step)) return attendance;
  return Error{ErrorCode::kCorruptPayload,
               "an update of step " + std::to_string(step) + " that depends on impossible steps"};
}

v1::Report to_message(const StepReport& report) {
  v1::Report message;
  message.set_step(report.step);
  message.set_loss(report.loss);
  message.set_compute_s(report.computing.count());
  message.set_waiting_share(report.waiting_share);
  message.set_passes(report.passes);
  if (report.digest) message.set_digest(*report.digest);
  return message;
}

v1::Evaluation to_message(const Score& score) {
  v1::Evaluation message;
  message.set_step(score.step);
  message.set_loss(score.evaluation.loss);
  message.set_accuracy(score.evaluation.accuracy);
  message.set_samples(score.evaluation.samples);
  message.set_is_closing(score.is_closing);
  return message;
}

Score score_from(const v1::Evaluation& message) {
  return {.step = message.step(),
          .evaluation = {.loss = message.loss(),
                         .accuracy = message.accuracy(),
                         .samples = message.samples()},
          .is_closing = message.is_closing()};
}

FinishCause cause_from(v1::FinishCause message) {
  switch (message) {
    case v1::CAUSE_TARGET:
      return FinishCause::kTarget;
    case v1::CAUSE_STOPPED:
      return FinishCause::kStopped;
    default:
      return FinishCause::kSteps;
  }
}

v1::LayerTable to_message(const LayerTable& layers) {
  v1::LayerTable message;
  for (const Layer& layer : layers) {
    v1::Layer& one = *message.add_layers();
    one.set_name(layer.name);
    one.set_offset(layer.offset);
    one.set_count(layer.count);
    for (const std::int64_t side : layer.shape) one.add_shape(side);
  }
  return message;
}

Result<LayerTable> layers_from(const v1::LayerTable& message, std::size_t elements) {
  LayerTable layers;
  std::size_t end = 0;
  for (const v1::Layer& one : message.layers()) {
    Layer layer{.name = one.name(),
                .offset = one.offset(),
                .count = one.count(),
                .shape = {one.shape().begin(), one.shape().end()}};
    const bool is_next = layer.offset == end && layer.count > 0 && layer.count <= elements - end;
    if (!is_next || !is_shape_of(layer))
      return Error{ErrorCode::kMismatch, "a layer that does not fit its model"};
    end += layer.count;
    layers.push_back(std::move(layer));
  }
  if (!layers.empty() && end != elements)
    return Error{ErrorCode::kMismatch, "layers that are not the whole model"};
  return layers;
}

v1::Plan to_message(const Plan& plan) {
  v1::Plan message;
  message.set_keep_ratio(plan.keep_ratio);
  message.set_delay_steps(static_cast<std::uint32_t>(plan.delay_steps));
  message.set_period_steps(static_cast<std::uint32_t>(plan.period_steps));
  message.set_merge(std::string(name_of(plan.merge)));
  message.mutable_keep_ratios()->Add(plan.keep_ratios.begin(), plan.keep_ratios.end());
  for (const auto& parts : plan.schedule)
    message.add_schedule()->mutable_parts()->Add(parts.begin(), parts.end());
  return message;
}

Result<Plan> plan_from(const v1::Plan& message) {
  const Merge merge = LONGHAUL_TRY(parse_merge(message.merge()));
  // Counts beyond int become negative, which no limit allows.
  Plan plan{.keep_ratio = message.keep_ratio(),
            .delay_steps = static_cast<int>(message.delay_steps()),
            .period_steps = static_cast<int>(message.period_steps()),
            .merge = merge,
            .keep_ratios = {message.keep_ratios().begin(), message.keep_ratios().end()}};
  for (const v1::ScheduledParts& step : message.schedule())
    plan.schedule.emplace_back(step.parts().begin(), step.parts().end());
  Status within_limits = check_plan_limits(plan);
  if (!within_limits.ok()) return std::move(within_limits).error().within("plan");
  return plan;
}

}  // namespace longhaul
