// The kinds of payload bodies. Each is parsed and checked once; afterwards its tiles decode without
// a way to fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/codec/position_coding.h"
#include "longhaul/codec/random_subset.h"
#include "longhaul/codec/tile.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {

enum class PayloadKind : std::uint8_t {
  kDense = 1,         // every element
  kSparse = 2,        // positions and values
  kRandom = 3,        // a seed, and the values of the subset it stands for
  kRandomSparse = 4,  // a seed, and positions and values inside that subset
  kLowRank = 5,       // factors per matrix
};

struct BodyContext {
  ValueFormat format = ValueFormat::kFp32;
  std::size_t elements = 0;
  bool is_sealed_here = false;  // so values are finite
};

struct DenseBody {
  BodyContext context;
  ByteView bytes;

  static Result<DenseBody> parse(ByteView bytes, const BodyContext& context);
  [[nodiscard]] std::size_t values() const { return context.elements; }
  void add_tile(std::size_t tile, float weight, std::span<float> out, TileEntries& scratch) const;
};

struct SparseBody {
  struct Tile {
    CodedPositions positions;
    ByteView values;
    std::size_t first = 0;  // of its values among those of the body
  };
  BodyContext context;
  std::vector<Tile> tiles;
  std::size_t value_count = 0;
  // Decoded, of all tiles one after the other, if the payload was sealed here: whoever has sent it
  // reads it again in every step until its mean comes.
  std::vector<std::uint16_t> positions = {};

  static Result<SparseBody> parse(ByteView bytes, const BodyContext& context);
  [[nodiscard]] std::size_t values() const { return value_count; }
  void entries_of(std::size_t tile, TileEntries& entries) const;
};

struct RandomBody {
  BodyContext context;
  RandomSubset subset;
  ByteView bytes;

  static Result<RandomBody> parse(ByteView bytes, const BodyContext& context);
  [[nodiscard]] std::size_t values() const { return subset.count_of(context.elements); }
  void entries_of(std::size_t tile, TileEntries& entries) const;
};

struct RandomSparseBody {
  RandomSubset subset;
  SparseBody kept;  // positions count inside the subset of the tile

  static Result<RandomSparseBody> parse(ByteView bytes, const BodyContext& context);
  [[nodiscard]] std::size_t values() const { return kept.values(); }
  void entries_of(std::size_t tile, TileEntries& entries) const;
};

struct LowRankBody {
  // Consecutive parts of the update: a matrix as left · rightᵀ (rank > 0), or its values (rank =
  // 0).
  struct Block {
    std::size_t begin = 0;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t rank = 0;
    std::size_t first_value = 0;  // in `factors`
  };
  BodyContext context;
  std::vector<Block> blocks;
  std::vector<float> factors;

  static Result<LowRankBody> parse(ByteView bytes, const BodyContext& context);
  [[nodiscard]] std::size_t values() const { return factors.size(); }
  void add_tile(std::size_t tile, float weight, std::span<float> out, TileEntries& scratch) const;
  // The same for elements of one block, counted from `first` in it.
  void add_block_part(const Block& block, std::size_t first, float weight, std::span<float> out,
                      TileEntries& scratch) const;
};

using PayloadBody = std::variant<DenseBody, SparseBody, RandomBody, RandomSparseBody, LowRankBody>;

// A body that names its elements one by one, so that unions of several can be formed.
template <typename Body>
concept NamesItsElements = requires(const Body& body, TileEntries& entries) {
  body.entries_of(0, entries);
};

}  // namespace longhaul
