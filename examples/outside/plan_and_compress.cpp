// Plans for a link, then compresses an update by that plan. CMakeLists.txt says how to build it.
// Prints the plan with its reason and the size of the update. Exits with 0 if nothing was lost.
#include <cstdio>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"
#include "longhaul/plan/deco.h"

int main() {
  using namespace std::chrono_literals;
  constexpr std::size_t kElements = 1'000'000;
  constexpr std::size_t kReplicas = 4;
  const longhaul::CodecOptions spec = longhaul::parse_codec("top_k/bf16").value();

  // Four replicas, each with 100 ms of work per step, 20 Mbit/s and 50 ms one way.
  const longhaul::Conditions replicas(kReplicas,
                                      {.compute = 100ms,
                                       .latency = 50ms,
                                       .up = longhaul::Bandwidth::from_bits_per_second(20e6),
                                       .down = longhaul::Bandwidth::from_bits_per_second(20e6)});
  const longhaul::Decision decision = deco(replicas, {spec, kElements, kReplicas});
  std::printf("keep ratio %.4f, delay %d: %s\n", decision.plan.keep_ratio,
              static_cast<int>(decision.plan.delay_steps), decision.reason.c_str());

  std::vector<float> gradient(kElements);
  for (std::size_t i = 0; i < kElements; ++i) gradient[i] = static_cast<float>(i % 1000) - 500.0F;
  longhaul::Workers workers(1);
  const auto codec = make_codec(spec, {}, workers);
  std::vector<float> residual(kElements);
  const longhaul::ByteBuffer payload = codec->take(
      {.residual = residual, .increment = gradient, .keep_ratio = decision.plan.keep_ratio});
  const auto view = longhaul::PayloadView::parse(payload, kElements);
  if (!view.ok()) return std::puts(view.error().message.c_str()), 1;
  longhaul::add(*view, 1.0F, residual);
  std::printf("%zu bytes instead of %zu\n", payload.size(), kElements * sizeof(float));
  return residual == gradient ? 0 : 1;
}
