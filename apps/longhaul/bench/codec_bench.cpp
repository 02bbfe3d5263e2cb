#include "apps/longhaul/bench/codec_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/longhaul/command/torch_program.h"
#include "longhaul/base/check.h"
#include "longhaul/base/clock.h"
#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/payload.h"

namespace longhaul::apps {
namespace {

constexpr std::size_t kWarmUps = 2;

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Roughly normal values (sums of four uniform ones) whose scale changes from block to block, as it
// does from layer to layer.
void fill_gradient(std::uint64_t seed, std::span<float> out) {
  constexpr std::size_t kBlock = 1024;
  for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
    const double octave = static_cast<double>(mixed(seed + begin) >> 40) * 0x1p-24 * 3.0 - 1.5;
    const auto scale = static_cast<float>(std::exp2(octave)) * 0x1p-16F;
    for (std::size_t i = begin; i < std::min(out.size(), begin + kBlock); ++i) {
      const std::uint64_t bits = mixed(seed ^ (0x9E3779B97F4A7C15U * (i + 1)));
      const auto sum = static_cast<std::int32_t>((bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) +
                                                 ((bits >> 32) & 0xFFFF) + (bits >> 48));
      out[i] = static_cast<float>(sum - 2 * 0xFFFF) * scale;
    }
  }
}

template <typename Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size()))) - 1];
}

// A square-ish matrix and what is left over: something for low rank to work on.
LayerTable bench_layers(std::size_t elements) {
  const std::size_t columns =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(elements))));
  const std::size_t rows = elements / columns;
  LayerTable layers{
      {.name = "matrix",
       .offset = 0,
       .count = rows * columns,
       .shape = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}}};
  if (rows * columns < elements)
    layers.push_back(
        {.name = "rest", .offset = rows * columns, .count = elements - rows * columns});
  return layers;
}

void measure(CodecBenchRow& row, const CodecBench& bench, Workers& workers) {
  const std::unique_ptr<Codec> codec = make_codec(row.codec, bench_layers(bench.elements), workers);
  std::vector<float> gradient(bench.elements);
  std::vector<float> residual(bench.elements);
  std::vector<float> out(bench.elements);
  std::vector<double> encode;
  std::vector<double> decode;
  std::vector<double> copy;
  for (std::size_t i = 0; i < bench.repetitions + kWarmUps; ++i) {
    fill_gradient(i + 1, gradient);
    const std::size_t bytes = bench.elements * sizeof(float);
    const double copy_s = seconds_of([&] { std::memcpy(out.data(), gradient.data(), bytes); });
    ByteBuffer payload;
    const TakeOptions request{
        .residual = residual, .increment = gradient, .keep_ratio = row.ratio, .seed = i};
    const double encode_s = seconds_of([&] { payload = codec->take(request); });
    const double decode_s = seconds_of([&] {
      const Result<PayloadView> view = PayloadView::parse(payload, bench.elements);
      LONGHAUL_CHECK(view.ok());
      add(*view, 0.25F, out);
    });
    if (i < kWarmUps) continue;
    copy.push_back(copy_s);
    encode.push_back(encode_s);
    decode.push_back(decode_s);
    row.payload_bytes = static_cast<double>(payload.size());
    const std::size_t values = PayloadView::parse(payload, bench.elements).value().values();
    row.bits_per_value =
        8.0 * row.payload_bytes / static_cast<double>(std::max<std::size_t>(1, values));
  }
  const double gigabytes = static_cast<double>(bench.elements) * sizeof(float) / 1e9;
  row.encode_gb_s = gigabytes / quantile(encode, 0.5);
  row.encode_p99_gb_s = gigabytes / quantile(encode, 0.99);
  row.decode_gb_s = gigabytes / quantile(decode, 0.5);
  row.memcpy_gb_s = gigabytes / quantile(copy, 0.5);
}

void measure_sum(CodecBench& bench, Workers& workers) {
  const std::unique_ptr<Codec> codec = make_codec(bench.summed_codec, {}, workers);
  std::vector<float> residual(bench.elements);
  std::vector<float> out(bench.elements);
  std::vector<WeightedPayload> payloads;
  std::size_t entries = 0;
  for (std::size_t i = 0; i < bench.summed_payloads; ++i) {
    fill_gradient(i + 1, residual);
    ByteBuffer bytes = codec->take({.residual = residual, .keep_ratio = bench.summed_ratio});
    payloads.push_back(
        {.payload = CheckedPayload::of_sealed(std::move(bytes), bench.elements), .weight = 0.125F});
    entries += payloads.back().payload.view().values();
  }
  std::vector<double> seconds;
  for (std::size_t i = 0; i < bench.repetitions + kWarmUps; ++i) {
    const double s = seconds_of([&] { sum_payloads(payloads, out, workers); });
    if (i >= kWarmUps) seconds.push_back(s);
  }
  bench.sum_ns_per_entry = 1e9 * quantile(seconds, 0.5) / static_cast<double>(entries);
}

// Speed of torch's abs, topk and gather per ratio, from the program that links it.
Result<double> measure_torch(const CodecBench& bench, double ratio) {
  const std::string output = LONGHAUL_TRY(
      run_torch_program({"bench-top-k", "--elements", std::to_string(bench.elements), "--keep",
                         std::to_string(static_cast<std::size_t>(
                             std::round(ratio * static_cast<double>(bench.elements)))),
                         "--repetitions", std::to_string(bench.repetitions)}));
  const auto seconds = nlohmann::json::parse(output).at("seconds").get<std::vector<double>>();
  return static_cast<double>(bench.elements) * sizeof(float) / 1e9 / quantile(seconds, 0.5);
}

bool has_top_k(const CodecBenchRow& row) {
  return row.codec.kind == CodecKind::kTopK || row.codec.kind == CodecKind::kChunkTopK;
}

}  // namespace

std::vector<CodecBenchRow> default_codec_rows() {
  constexpr double kPercent = 0.01;
  constexpr double kSparseLoCo = 1.0 / 64;
  using enum CodecKind;
  using enum ValueFormat;
  return {
      {{.kind = kTopK, .values = kBf16}, kPercent},
      {{.kind = kTopK, .values = kFp32}, kPercent},
      {{.kind = kTopK, .values = k4Bit}, kPercent},
      {{.kind = kTopK, .values = k2Bit}, kSparseLoCo},
      {{.kind = kChunkTopK, .values = k2Bit}, kSparseLoCo},
      {{.kind = kTopK, .values = kBf16}, 0.001},
      {{.kind = kTopK, .values = kBf16}, 0.1},
      {{.kind = kThreshold, .values = kBf16, .threshold = 8.0F}, kPercent},
      {{.kind = kRandomK, .values = kBf16}, kPercent},
      {{.kind = kCocktail, .values = k4Bit}, 0.02},
      {{.kind = kLowRank, .values = kFp32}, 1.0},
      {{.kind = kSign, .values = k1Bit}, 1.0},
      {{.kind = kDense, .values = k4Bit}, 1.0},
      {{.kind = kDense, .values = k8Bit}, 1.0},
      {{.kind = kDense, .values = kBf16}, 1.0},
      {{.kind = kDense, .values = kFp32}, 1.0},
  };
}

void run_codec_bench(CodecBench& bench, const Progress& progress) {
  Workers workers(bench.threads);
  std::map<double, double> torch;  // by ratio
  for (const CodecBenchRow& row : bench.rows) {
    if (bench.with_torch && has_top_k(row)) torch.emplace(row.ratio, 0.0);
  }
  const std::size_t all = bench.rows.size() + torch.size() + 1;
  std::size_t done = 0;
  for (CodecBenchRow& row : bench.rows) {
    progress(done++, all, row.codec.name());
    measure(row, bench, workers);
  }
  progress(done++, all, "sum of payloads");
  measure_sum(bench, workers);
  for (auto& [ratio, speed] : torch) {
    progress(done++, all, "torch topk");
    const Result<double> measured = measure_torch(bench, ratio);
    if (!measured.ok()) {
      bench.torch_missing = measured.error().message;
      torch.clear();
      break;
    }
    speed = *measured;
  }
  for (CodecBenchRow& row : bench.rows) {
    const auto found = torch.find(row.ratio);
    if (has_top_k(row) && found != torch.end()) row.torch_topk_gb_s = found->second;
  }
  progress(all, all, "");
}

}  // namespace longhaul::apps
