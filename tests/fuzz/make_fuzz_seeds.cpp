// make_fuzz_seeds DIRECTORY: writes small well-formed inputs for the fuzz programs to
// DIRECTORY/NAME/.
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/codec/position_coding.h"
#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/tile.h"
#include "longhaul/codec/value_format.h"
#include "tests/fuzz/body_fuzz.h"

namespace {

using namespace longhaul;
using Generator =
    std::minstd_rand;  // the standard fixes its numbers, unlike those of distributions

constexpr std::array kFormats{ValueFormat::kFp32, ValueFormat::kBf16, ValueFormat::k8Bit,
                              ValueFormat::k4Bit, ValueFormat::k2Bit, ValueFormat::k1Bit};

void append_values(ValueFormat format, std::size_t count, Generator& next, ByteWriter& out) {
  std::vector<float> values(count);
  for (float& value : values) value = (static_cast<float>(next() % 20001) - 10000.0F) * 1e-6F;
  encode_values(format, values, out.extend(value_bytes(format, count)));
}

// Every tile keeps about one element in `spacing` of those that limit(tile) offers.
template <typename Limit>
void append_tiles(const PayloadHeader& header, std::size_t spacing, const Limit& limit,
                  ByteWriter& out) {
  Generator next(7);
  for (std::size_t tile = 0; tile < tile_count(header.elements); ++tile) {
    std::vector<std::uint16_t> positions;
    for (std::size_t i = next() % spacing; i < limit(tile); i += 1 + next() % (2 * spacing)) {
      positions.push_back(static_cast<std::uint16_t>(i));
    }
    write_positions(positions, out);
    append_values(header.format, positions.size(), next, out);
  }
}

ByteBuffer dense_body(const PayloadHeader& header) {
  ByteWriter out;
  Generator next(1);
  append_values(header.format, header.elements, next, out);
  return std::move(out).release();
}

ByteBuffer sparse_body(const PayloadHeader& header, std::size_t spacing) {
  ByteWriter out;
  append_tiles(
      header, spacing, [&](std::size_t tile) { return tile_size(tile, header.elements); }, out);
  return std::move(out).release();
}

ByteWriter subset_head(const RandomSubset& subset) {
  ByteWriter out;
  out.u64(subset.seed);
  out.u32(subset.per_tile);
  return out;
}

ByteBuffer random_body(const PayloadHeader& header, const RandomSubset& subset) {
  ByteWriter out = subset_head(subset);
  Generator next(3);
  for (std::size_t tile = 0; tile < tile_count(header.elements); ++tile) {
    append_values(header.format, subset.count_in(tile_size(tile, header.elements)), next, out);
  }
  return std::move(out).release();
}

ByteBuffer random_sparse_body(const PayloadHeader& header, const RandomSubset& subset) {
  ByteWriter out = subset_head(subset);
  append_tiles(
      header, 5,
      [&](std::size_t tile) { return subset.count_in(tile_size(tile, header.elements)); }, out);
  return std::move(out).release();
}

struct Matrix {
  std::uint32_t rows = 1;
  std::uint32_t columns = 1;
  std::uint32_t rank = 0;  // 0: as it is
};

ByteBuffer low_rank_body(const PayloadHeader& header, const std::vector<Matrix>& matrices) {
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(matrices.size()));
  std::size_t count = 0;
  for (const auto& [rows, columns, rank] : matrices) {
    for (const std::uint32_t field : {rows, columns, rank}) out.u32(field);
    count += rank == 0 ? rows * columns : (rows + columns) * rank;
  }
  Generator next(5);
  append_values(header.format, count, next, out);
  return std::move(out).release();
}

class SeedWriter {
 public:
  explicit SeedWriter(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // A seed for the program of one kind, and, for some, the whole payload for the payload program.
  void write(const std::string& program, const PayloadHeader& header, const ByteBuffer& body) {
    const std::string name =
        std::string(name_of(header.format)) + "_" + std::to_string(header.elements);
    ByteBuffer input = fuzz::input_prefix(header);
    input.insert(input.end(), body.begin(), body.end());
    write_file(program, name, input);
    if (header.format == ValueFormat::kBf16 || header.format == ValueFormat::k2Bit)
      write_file("payload", program + "_" + name, seal_payload(header, {&body, 1}));
  }

  void write_file(const std::string& program, const std::string& name, ByteView bytes) {
    std::filesystem::create_directories(directory_ / program);
    std::ofstream file(directory_ / program / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    failed_ = failed_ || !file.good();
  }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::filesystem::path directory_;
  bool failed_ = false;
};

void write_all_formats(SeedWriter& seeds) {
  constexpr std::uint64_t kSeed = 0x1234567890ABCDEF;
  for (const ValueFormat format : kFormats) {
    const auto header = [&](PayloadKind kind, std::uint64_t elements) {
      return PayloadHeader{.kind = kind, .format = format, .elements = elements};
    };
    const PayloadHeader dense = header(PayloadKind::kDense, bits_of(format) <= 8 ? 513 : 7);
    seeds.write("dense", dense, dense_body(dense));
    for (const auto& [elements, spacing] : {std::pair{7, 2}, {65537, 1000}}) {
      const PayloadHeader sparse =
          header(PayloadKind::kSparse, static_cast<std::uint64_t>(elements));
      seeds.write("sparse", sparse, sparse_body(sparse, static_cast<std::size_t>(spacing)));
    }
    const PayloadHeader random = header(PayloadKind::kRandom, 65537);
    seeds.write("random", random, random_body(random, {.seed = kSeed, .per_tile = 40}));
    const PayloadHeader random_sparse = header(PayloadKind::kRandomSparse, 200000);
    seeds.write("random_sparse", random_sparse,
                random_sparse_body(random_sparse, {.seed = kSeed, .per_tile = 100}));
  }
}

void write_low_rank(SeedWriter& seeds) {
  for (const ValueFormat format : {ValueFormat::kFp32, ValueFormat::kBf16}) {
    const auto write = [&](std::uint64_t elements, const std::vector<Matrix>& matrices) {
      const PayloadHeader header{
          .kind = PayloadKind::kLowRank, .format = format, .elements = elements};
      seeds.write("low_rank", header, low_rank_body(header, matrices));
    };
    write(7, {{.rows = 2, .columns = 3, .rank = 1}, {.rows = 1, .columns = 1}});
    write(513, {{.rows = 16, .columns = 32, .rank = 2}, {.rows = 1, .columns = 1}});
    write(4097, {{.rows = 1, .columns = 1}, {.rows = 64, .columns = 64, .rank = 1}});
  }
  const PayloadHeader two_tiles{
      .kind = PayloadKind::kLowRank, .format = ValueFormat::kBf16, .elements = 65537};
  seeds.write("low_rank", two_tiles,
              low_rank_body(two_tiles, {{.columns = 1}, {.rows = 256, .columns = 256, .rank = 1}}));
}

// With the right digest, which the payload program has no way to find.
void write_unknown_kind(SeedWriter& seeds) {
  const ByteBuffer body;
  const ByteBuffer payload = seal_payload({.kind = PayloadKind{9}, .elements = 7}, {&body, 1});
  seeds.write_file("payload", "unknown_kind", payload);
}

void write_units(SeedWriter& seeds) {
  for (const std::string_view text :
       {"200ms", "1.5gbit", "64KiB", "25M", "1/64", "1%", "2min", "10MB/s", "1e-3", "0.5TB"}) {
    std::string name(text);
    std::ranges::replace_if(
        name, [](char c) { return c == '/' || c == '%' || c == '.'; }, '_');
    seeds.write_file("units", name, std::as_bytes(std::span(text)));
  }
}

void write_states(SeedWriter& seeds) {
  State state;
  seeds.write_file("state", "empty", to_bytes(state));
  state.tensors = {{"shared", {1, -2.5F}}, {"residual", {}}};
  state.blobs["message"] = {std::byte{1}, std::byte{2}, std::byte{3}};
  state.values = {{"step", 12}, {"plan.keep_ratio", 0.1}, {"units", {"move", "gradient"}}};
  seeds.write_file("state", "all_kinds", to_bytes(state));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_fuzz_seeds DIRECTORY\n";
    return 2;
  }
  SeedWriter seeds(argv[1]);
  write_all_formats(seeds);
  write_low_rank(seeds);
  write_unknown_kind(seeds);
  write_units(seeds);
  write_states(seeds);
  if (seeds.failed()) std::cerr << "make_fuzz_seeds: cannot write to " << argv[1] << '\n';
  return seeds.failed() ? 1 : 0;
}
