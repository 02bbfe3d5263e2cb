#include "longhaul/exchange/protocol.h"

#include <algorithm>
#include <random>
#include <string>

namespace longhaul {
namespace {

constexpr std::uint32_t kMostSteps = 1'000'000;
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

v1::Plan to_message(const Plan& plan) {
  v1::Plan message;
  message.set_keep_ratio(plan.keep_ratio);
  message.set_delay_steps(static_cast<std::uint32_t>(plan.delay_steps));
  message.set_period_steps(static_cast<std::uint32_t>(plan.period_steps));
  message.set_merge(std::string(name_of(plan.merge)));
  return message;
}

Result<Plan> plan_from(const v1::Plan& message) {
  const Result<Merge> merge = parse_merge(message.merge());
  if (!merge.ok()) return merge.error();
  const double ratio = message.keep_ratio();
  if (!(ratio > 0 && ratio <= 1) || message.delay_steps() > kMostSteps ||
      message.period_steps() < 1 || message.period_steps() > kMostSteps)
    return Error{ErrorCode::kMismatch, "a plan out of range"};
  const Plan plan{.keep_ratio = ratio,
                  .delay_steps = static_cast<int>(message.delay_steps()),
                  .period_steps = static_cast<int>(message.period_steps()),
                  .merge = *merge};
  if (!fits_a_hub(plan)) {
    return Error{ErrorCode::kMismatch,
                 "a plan with a period of " + std::to_string(plan.period_steps) + " and merge = " +
                     std::string(name_of(plan.merge)) + ", which no hub runs so far"};
  }
  return plan;
}

}  // namespace longhaul
