// The factors of low-rank payloads: reading them, and adding left · rightᵀ tile by tile.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload_body.h"

namespace longhaul {
namespace {

constexpr std::size_t kBlockHeaderBytes = 12;

std::size_t values_in(const LowRankBody::Block& block) {
  const std::size_t rows = block.rows;
  const std::size_t columns = block.columns;
  return block.rank == 0 ? rows * columns : (rows + columns) * block.rank;
}

// Rows and columns have 32 bits each, so neither their product nor values_in() overflows 64 bits
// here.
Result<std::vector<LowRankBody::Block>> read_blocks(ByteReader& in, std::size_t elements) {
  if (in.remaining() < 4) return corrupt_payload("low rank: truncated");
  const std::size_t count = in.u32();
  if (in.remaining() / kBlockHeaderBytes < count)
    return corrupt_payload("low rank: fewer bytes than blocks");
  std::vector<LowRankBody::Block> blocks(count);
  std::size_t begin = 0;
  std::size_t first_value = 0;
  for (LowRankBody::Block& block : blocks) {
    block = {.begin = begin,
             .rows = in.u32(),
             .columns = in.u32(),
             .rank = in.u32(),
             .first_value = first_value};
    if (block.rows == 0 || block.columns == 0) return corrupt_payload("low rank: empty block");
    if (block.rank > std::min(block.rows, block.columns))
      return corrupt_payload("low rank: rank above the size of its matrix");
    if (std::size_t{block.rows} * block.columns > elements - begin)
      return corrupt_payload("low rank: blocks beyond the update");
    begin += std::size_t{block.rows} * block.columns;
    first_value += values_in(block);
  }
  if (begin != elements) return corrupt_payload("low rank: blocks do not cover the update");
  return blocks;
}

// Factors may be finite while their product is not. Half the range is left for the rounding of its
// sums.
bool product_is_finite(const LowRankBody::Block& block, std::span<const float> factors) {
  const std::size_t split = std::size_t{block.rows} * block.rank;
  const float left = kernels::magnitude_range(factors.first(split)).max_magnitude;
  const float right = kernels::magnitude_range(factors.subspan(split)).max_magnitude;
  const double bound = static_cast<double>(left) * static_cast<double>(right) * block.rank;
  return bound < std::numeric_limits<float>::max() / 2;
}

}  // namespace

Result<LowRankBody> LowRankBody::parse(ByteView bytes, const BodyContext& context) {
  if (context.format != ValueFormat::kFp32 && context.format != ValueFormat::kBf16)
    return corrupt_payload("low rank: factors must be fp32 or bf16");
  ByteReader in(bytes);
  std::vector<Block> blocks = LONGHAUL_TRY(read_blocks(in, context.elements));
  LowRankBody body{.context = context, .blocks = std::move(blocks), .factors = {}};
  const std::size_t count =
      body.blocks.empty() ? 0 : body.blocks.back().first_value + values_in(body.blocks.back());
  if (count > in.remaining() || value_bytes(context.format, count) != in.remaining())
    return corrupt_payload("low rank: wrong length");
  const ByteView values = in.bytes(in.remaining());
  const Status finite = check_values(context.format, values, count);
  if (!finite.ok()) return finite.error();
  body.factors.resize(count);
  decode_values(context.format, values, body.factors);
  for (const Block& block : body.blocks) {
    if (block.rank == 0) continue;
    if (!product_is_finite(block,
                           std::span(body.factors).subspan(block.first_value, values_in(block)))) {
      return Error{ErrorCode::kNotFinite, "low rank: the product of the factors is not finite"};
    }
  }
  return body;
}

void LowRankBody::add_tile(std::size_t tile, float weight, std::span<float> out,
                           TileEntries& scratch) const {
  const std::size_t tile_first = tile_begin(tile);
  const std::size_t tile_end = tile_first + out.size();
  // From the block that holds the first element: they cover the update, so there is one.
  auto block = std::ranges::upper_bound(blocks, tile_first, {}, &Block::begin) - 1;
  for (; block != blocks.end() && block->begin < tile_end; ++block) {
    const std::size_t block_end = block->begin + std::size_t{block->rows} * block->columns;
    const std::size_t from = std::max(block->begin, tile_first);
    const std::size_t to = std::min(block_end, tile_end);
    add_block_part(*block, from - block->begin, weight, out.subspan(from - tile_first, to - from),
                   scratch);
  }
}

void LowRankBody::add_block_part(const Block& block, std::size_t first, float weight,
                                 std::span<float> out, TileEntries& scratch) const {
  const std::span block_values = std::span(factors).subspan(block.first_value, values_in(block));
  if (block.rank == 0)
    return kernels::add_scaled(block_values.subspan(first, out.size()), weight, out);
  const std::size_t rows = block.rows;
  const std::size_t columns = block.columns;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t row = (first + done) / columns;
    const std::size_t column = (first + done) % columns;
    const std::size_t here = std::min(columns - column, out.size() - done);
    // The product first, the weight once: the same bits as a decoder that forms the matrix.
    scratch.values.assign(here, 0.0F);
    for (std::size_t r = 0; r < block.rank; ++r) {
      const std::span right = block_values.subspan(rows * block.rank + r * columns + column, here);
      kernels::add_scaled(right, block_values[r * rows + row], scratch.values);
    }
    kernels::add_scaled(scratch.values, weight, out.subspan(done, here));
    done += here;
  }
}

}  // namespace longhaul
