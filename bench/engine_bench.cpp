// How long the engine itself takes for a step, beside a copy of the model.
//
//   build/release/bin/engine_bench [--json] [--elements N] [--rule R] [--local-step L]
//                                  [--threads T]
//
// One replica, no network: the mean of each round holds its own payload and those of three others,
// which were encoded and checked before. The time of a step is that of submit() and end_step()
// together, over whole periods; summing the payloads is part of it. `memcpys` divides it by the
// time of one thread for copying the model, timed in turn with it: the median of at least 7 pairs.
// `stream_speedup` is how much faster that many threads run a loop of six streams. `vectors` is the
// memory that the engine holds, beside parameters and gradient, in models. `step_without_round_s`
// is the median of steps that neither send nor merge.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/memory.h"
#include "longhaul/codec/payload.h"
#include "longhaul/sync/engine.h"

namespace {

std::atomic<std::size_t> held_bytes{0};

}  // namespace

// Counted, so that `vectors` is measured and not added up by hand.
void* operator new(std::size_t bytes) {
  void* memory = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc)
  if (memory == nullptr) throw std::bad_alloc();
  held_bytes += malloc_usable_size(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) held_bytes -= malloc_usable_size(memory);
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { operator delete(memory); }

namespace longhaul {
namespace {

using Floats = std::vector<float>;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kOthers = 3;
constexpr std::size_t kPairs = 7;
constexpr std::size_t kWarmUpSteps = 4;
constexpr double kKeepRatio = 0.01;

double seconds_of(const std::function<void()>& work) {
  const auto begin = SteadyClock::now();
  work();
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// About normal, the same for the same seed.
Floats noise(std::size_t elements, std::uint64_t seed, float scale) {
  Floats values(elements);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t bits = state ^ (state >> 29U);
    int sum = 0;
    for (unsigned shift = 0; shift < 64; shift += 16)
      sum += static_cast<std::int16_t>(bits >> shift);
    value = scale * static_cast<float>(sum) * 0x1p-15F;
  }
  return values;
}

// Three others whose payloads are always the same, and this replica's own. The means are what a hub
// client hands over: payloads that were checked when they arrived, not yet summed.
class BenchExchange final : public Exchange {
 public:
  BenchExchange(const CodecOptions& codec, std::size_t elements, Workers& workers) {
    for (std::size_t i = 0; i < kOthers; ++i) {
      Floats update = noise(elements, 100 + i, 1e-3F);
      ByteBuffer bytes =
          make_codec(codec, {}, workers)->take({.residual = update, .keep_ratio = kKeepRatio});
      others_.push_back(
          {.payload = CheckedPayload::of_sealed(std::move(bytes), elements), .weight = kShare});
    }
  }

  void submit(Update update) override {
    own_[update.round] = {.payload = std::move(update.payload), .weight = kShare};
  }

  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    Mean mean{.round = round, .terms = {own_.extract(round).mapped()}};
    mean.terms.insert(mean.terms.end(), others_.begin(), others_.end());
    return mean;
  }

 private:
  static constexpr float kShare = 1.0F / (kOthers + 1);

  std::vector<WeightedPayload> others_;
  std::map<RoundId, WeightedPayload> own_;
};

struct Row {
  Merge merge = Merge::kLate;
  LocalStep local_step = LocalStep::kOurs;
  int period_steps = 1;
  std::string codec = "top_k/bf16";
};

constexpr int kDelay = 2;

EngineOptions setup_of(const Row& row) {
  EngineOptions options;
  options.recipe.codec = parse_codec(row.codec).value();
  options.recipe.plan = {.keep_ratio = kKeepRatio,
                         .delay_steps = kDelay,
                         .period_steps = row.period_steps,
                         .merge = row.merge};
  options.recipe.local.outer = OptimizerKind::kNesterov;
  options.recipe.local.outer_lr = 0.7F;
  options.recipe.local.outer_momentum = 0.9F;
  options.optimizer.kind = OptimizerKind::kMomentum;
  options.local_step = row.local_step;
  options.lr.peak = 0.01;
  return options;
}

// Six streams: three are read and written.
void six_streams(Floats& a, Floats& b, Floats& c, Workers& workers) {
  const std::size_t pieces = 8 * workers.count();
  workers.run(pieces, [&](std::size_t piece) {
    const std::size_t first = piece * a.size() / pieces;
    const std::size_t end = (piece + 1) * a.size() / pieces;
    for (std::size_t i = first; i < end; ++i) {
      const float value = 0.5F * a[i] + b[i];
      a[i] = value;
      b[i] = c[i] - value;
      c[i] = value + 1.0F;
    }
  });
}

double stream_speedup(std::size_t elements, std::size_t threads) {
  if (threads == 1) return 1;
  Floats a(elements, 1.0F);
  Floats b(elements, 2.0F);
  Floats c(elements, 3.0F);
  Workers one(1);
  Workers all(threads);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const double alone = seconds_of([&] { six_streams(a, b, c, one); });
    ratios.push_back(alone / seconds_of([&] { six_streams(a, b, c, all); }));
  }
  return median(ratios);
}

std::string text_of(LocalStep local_step) {
  return local_step == LocalStep::kOurs ? "ours" : "callers";
}

bool merges_now(const Engine& engine) {
  return !engine.in_flight().empty() &&
         engine.in_flight().front().step + kDelay <= engine.steps_done();
}

nlohmann::json measure(const Row& row, std::size_t elements, std::size_t threads) {
  Workers workers(threads);
  const EngineOptions options = setup_of(row);
  BenchExchange exchange(options.recipe.codec, elements, workers);
  Floats parameters = noise(elements, 1, 0.05F);
  std::array gradients{noise(elements, 2, 1e-3F), noise(elements, 3, 1e-3F)};
  Floats copied_to(elements);
  const std::size_t before = held_bytes;
  Engine engine(options, parameters, exchange, workers);
  const bool is_callers = row.local_step == LocalStep::kCallers;
  // The caller's own step, which is not timed: plain SGD.
  const auto move = [&] {
    if (!is_callers || !has_local_steps(row.merge)) return;
    const Floats& gradient = gradients[engine.steps_done() % 2];
    for (std::size_t i = 0; i < elements; ++i) parameters[i] -= 0.01F * gradient[i];
  };
  const auto step = [&] {
    if (is_callers && has_local_steps(row.merge)) {
      engine.submit_moved();
    } else {
      engine.submit(gradients[engine.steps_done() % 2]);
    }
    (void)engine.end_step();
  };
  const auto period = static_cast<std::size_t>(row.period_steps);
  const auto timed_step = [&] {
    move();
    return seconds_of(step);
  };
  for (std::size_t i = 0; i < std::max(2 * period, kWarmUpSteps); ++i) timed_step();
  std::vector<double> without_round;
  std::vector<double> ratios;
  std::vector<double> times;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const double copy = seconds_of(
        [&] { std::memcpy(copied_to.data(), parameters.data(), elements * sizeof(float)); });
    double together = 0;
    for (std::size_t k = 0; k < period; ++k) {
      const bool is_idle = engine.next_round() != engine.steps_done() && !merges_now(engine);
      const double taken = timed_step();
      if (is_idle) without_round.push_back(taken);
      together += taken;
    }
    times.push_back(together / static_cast<double>(period));
    ratios.push_back(times.back() / copy);
  }
  const double model = static_cast<double>(elements) * sizeof(float);
  return {{"rule", name_of(row.merge)},
          {"local_step", text_of(row.local_step)},
          {"period_steps", row.period_steps},
          {"codec", row.codec},
          {"keep_ratio", kKeepRatio},
          {"payloads_in_mean", kOthers + 1},
          {"elements", elements},
          {"threads", threads},
          {"ns_per_parameter", 1e9 * median(times) / static_cast<double>(elements)},
          {"memcpys", median(ratios)},
          {"stream_speedup", stream_speedup(elements, threads)},
          {"vectors", static_cast<double>(held_bytes - before) / model},
          {"step_without_round_s",
           without_round.empty() ? nlohmann::json() : nlohmann::json(median(without_round))}};
}

int run(int argc, char** argv) {
  CLI::App app("How long the engine itself takes for a step, beside a copy of the model");
  bool as_json = false;
  std::size_t elements = 0;
  std::size_t threads = 0;
  std::string rule;
  std::string local;
  app.add_flag("--json", as_json, "One JSON object on standard output");
  app.add_option("--elements", elements, "Of the model (default: 1M, 25M and 124M)");
  app.add_option("--rule", rule, "late, optimizer or outer (default: all)");
  app.add_option("--local-step", local, "ours or callers (default: both)");
  app.add_option("--threads", threads, "1 or more (default: 1 and 2)");
  CLI11_PARSE(app, argc, argv);
  keep_freed_memory();
  std::vector<Row> rows;
  for (const LocalStep local_step : {LocalStep::kOurs, LocalStep::kCallers}) {
    if (!local.empty() && local != text_of(local_step)) continue;
    rows.push_back({.merge = Merge::kLate, .local_step = local_step});
    rows.push_back({.merge = Merge::kLate, .local_step = local_step, .period_steps = 8});
    rows.push_back({.merge = Merge::kOptimizer, .local_step = local_step});
    rows.push_back({.merge = Merge::kOuter, .local_step = local_step, .period_steps = 8});
  }
  nlohmann::json measured = nlohmann::json::array();
  for (const std::size_t size :
       elements > 0 ? std::vector{elements}
                    : std::vector<std::size_t>{1'000'000, 25'000'000, 124'000'000}) {
    for (const Row& row : rows) {
      if (!rule.empty() && name_of(row.merge) != rule) continue;
      for (const std::size_t count :
           threads > 0 ? std::vector{threads} : std::vector<std::size_t>{1, 2}) {
        measured.push_back(measure(row, size, count));
        const nlohmann::json& last = measured.back();
        if (!as_json) std::cout << last.dump() << '\n' << std::flush;
      }
    }
  }
  if (as_json) std::cout << nlohmann::json{{"rows", measured}}.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) { return longhaul::run(argc, argv); }
