// How much memory a replica holds beside parameters and gradient, by counting every allocation. It
// replaces operator new: one file of a program may include it.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/payload.h"
#include "longhaul/sync/engine.h"

namespace longhaul::testing {

inline std::atomic<std::size_t> held_bytes{0};
inline std::atomic<std::size_t> most_held_bytes{0};

inline void* count_allocation(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t held = held_bytes += malloc_usable_size(memory);
  if (held > most_held_bytes) most_held_bytes = held;  // one thread allocates
  return memory;
}

}  // namespace longhaul::testing

void* operator new(std::size_t bytes) {
  return longhaul::testing::count_allocation(
      std::malloc(bytes));  // NOLINT(cppcoreguidelines-no-malloc)
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) longhaul::testing::held_bytes -= malloc_usable_size(memory);
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

namespace longhaul::testing {

// In vectors of the model.
struct HeldVectors {
  double between_steps = 0;
  double at_most = 0;  // also while a step is made
};

// As over a hub at its worst: all means of a step are there before the first one is merged.
class PayloadsOfOne final : public Exchange {
 public:
  void submit(Update update) override {
    ByteBuffer mean = *update.payload.bytes();
    means_[update.round] = CheckedPayload::of_sealed(std::move(mean), update.elements);
  }
  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    return Mean{.round = round, .terms = {{.payload = means_.extract(round).mapped()}}};
  }

 private:
  std::map<RoundId, CheckedPayload> means_;
};

class InPlaceOfOne final : public Exchange {
 public:
  void submit(Update update) override { values_[update.round] = update.in_place; }
  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    return Mean{.round = round, .in_place = values_.extract(round).mapped()};
  }
  [[nodiscard]] bool averages_in_place() const override { return true; }

 private:
  std::map<RoundId, std::span<float>> values_;
};

// A model of 16 equal layers and momentum, over three periods. A recipe by layer spreads its rounds
// evenly.
inline HeldVectors held_by(const std::string& recipe, bool averages_in_place,
                           std::size_t elements) {
  constexpr std::size_t kLayers = 16;
  EngineOptions options{.recipe = find_recipe(recipe).value(),
                        .optimizer = {.kind = OptimizerKind::kMomentum},
                        .lr = {.peak = 0.01},
                        .averages_in_place = averages_in_place};
  options.recipe.planner = PlannerKind::kNone;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const std::size_t first = elements * i / kLayers;
    options.layers.push_back({.name = "layer" + std::to_string(i) + ".weight",
                              .offset = first,
                              .count = elements * (i + 1) / kLayers - first});
  }
  std::vector<float> parameters(elements, 1.0F);
  std::vector<float> gradient(elements, 0.001F);
  Workers workers(1);
  PayloadsOfOne payloads;
  InPlaceOfOne in_place;
  Exchange& exchange = averages_in_place ? static_cast<Exchange&>(in_place) : payloads;
  const std::size_t before = held_bytes;
  most_held_bytes = before;
  Engine engine(options, parameters, exchange, workers);
  std::size_t between = 0;
  for (int step = 0; step < 3 * options.recipe.plan.period_steps; ++step) {
    engine.submit(gradient);
    (void)engine.end_step();
    between = std::max(between, held_bytes - before);
  }
  const double model = static_cast<double>(elements) * sizeof(float);
  return {.between_steps = static_cast<double>(between) / model,
          .at_most = static_cast<double>(most_held_bytes - before) / model};
}

}  // namespace longhaul::testing
