// The inner loops of the codecs, one by one. `longhaul bench codec` measures whole codecs.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "longhaul/codec/bf16.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/position_coding.h"
#include "longhaul/codec/top_select.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {
namespace {

std::vector<float> normal_values(std::size_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

void count_bytes(benchmark::State& state, std::size_t floats) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(floats * sizeof(float)));
}

// From L1 (4096 floats) to memory (16M floats).
void sizes(benchmark::internal::Benchmark* bench) { bench->Arg(4096)->Arg(65536)->Arg(1 << 24); }

void feed_and_mark(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<float> residual = normal_values(count);
  const std::vector<float> increment(count, 1e-9F);
  std::vector<std::uint64_t> marks(kernels::mark_words(count));
  for (auto _ : state) kernels::feed_and_mark(residual, increment, 1.0F, 2.6F, marks);
  count_bytes(state, count);
}
BENCHMARK(feed_and_mark)->Apply(sizes);

void count_at_least(benchmark::State& state) {
  const std::vector<float> values = normal_values(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(kernels::count_at_least(values, 2.6F));
  count_bytes(state, values.size());
}
BENCHMARK(count_at_least)->Apply(sizes);

void first_non_finite(benchmark::State& state) {
  const std::vector<float> values = normal_values(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(kernels::first_non_finite(values));
  count_bytes(state, values.size());
}
BENCHMARK(first_non_finite)->Apply(sizes);

void select_top_64_of_4096(benchmark::State& state) {
  const std::vector<float> values = normal_values(4096);
  Scratch<std::uint16_t> positions;
  std::uint32_t hint = 0;
  for (auto _ : state) {
    positions.clear();
    hint = select_top(values, 64, hint, positions);
  }
  count_bytes(state, values.size());
}
BENCHMARK(select_top_64_of_4096);

void kth_largest_of(benchmark::State& state) {
  const std::vector<float> values = normal_values(static_cast<std::size_t>(state.range(0)));
  std::vector<std::uint32_t> bits(values.size());
  for (auto _ : state) {
    std::ranges::transform(values, bits.begin(), magnitude_bits);
    benchmark::DoNotOptimize(kth_largest(bits, bits.size() / 2));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(kth_largest_of)->Arg(512)->Arg(300'000);

// A tile with one element in `range(0)` kept.
Scratch<std::uint16_t> random_positions(std::int64_t one_in) {
  std::mt19937_64 random(2);
  Scratch<std::uint16_t> positions;
  for (unsigned i = 0; i < 65536; ++i) {
    if (random() % static_cast<std::uint64_t>(one_in) == 0)
      positions.push_back(static_cast<std::uint16_t>(i));
  }
  return positions;
}

void write_positions(benchmark::State& state) {
  const Scratch<std::uint16_t> positions = random_positions(state.range(0));
  for (auto _ : state) {
    ByteWriter out;
    longhaul::write_positions(positions, out);
    benchmark::DoNotOptimize(out.size());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(positions.size()));
}
BENCHMARK(write_positions)->Arg(10)->Arg(64)->Arg(100)->Arg(1000);

void read_and_decode_positions(benchmark::State& state) {
  ByteWriter out;
  longhaul::write_positions(random_positions(state.range(0)), out);
  const ByteBuffer bytes = std::move(out).release();
  Scratch<std::uint16_t> positions;
  for (auto _ : state) {
    ByteReader in(bytes);
    decode_positions(read_positions(in, 65536).value(), positions);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(positions.size()));
}
BENCHMARK(read_and_decode_positions)->Arg(10)->Arg(64)->Arg(100)->Arg(1000);

void encode_and_decode_values(benchmark::State& state) {
  const ValueFormat format{static_cast<std::uint8_t>(state.range(0))};
  std::vector<float> values = normal_values(4096);
  std::vector<std::byte> bytes(value_bytes(format, values.size()));
  for (auto _ : state) {
    encode_values(format, values, bytes);
    decode_values(format, bytes, values);
  }
  count_bytes(state, values.size());
  state.SetLabel(std::string(name_of(format)));
}
BENCHMARK(encode_and_decode_values)->DenseRange(0, 5);

}  // namespace
}  // namespace longhaul
