// The factors of low-rank payloads: reading them, and adding left · rightᵀ tile by tile.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

constexpr std::size_t kMatrixHeaderBytes = 12;

// Rows and columns have 32 bits each, so neither their product nor values() overflows 64 bits here.
Result<std::vector<FactoredMatrix>> read_matrices(ByteReader& in, std::size_t elements) {
  if (in.remaining() < 4) return corrupt_payload("low rank: truncated");
  const std::size_t count = in.u32();
  if (in.remaining() / kMatrixHeaderBytes < count)
    return corrupt_payload("low rank: fewer bytes than blocks");
  std::vector<FactoredMatrix> matrices(count);
  std::size_t begin = 0;
  std::size_t first_value = 0;
  for (FactoredMatrix& matrix : matrices) {
    matrix = {.begin = begin,
              .rows = in.u32(),
              .columns = in.u32(),
              .rank = in.u32(),
              .left = first_value};
    if (matrix.rows == 0 || matrix.columns == 0) return corrupt_payload("low rank: empty block");
    if (matrix.rank > std::min(matrix.rows, matrix.columns))
      return corrupt_payload("low rank: rank above the size of its matrix");
    if (matrix.count() > elements - begin)
      return corrupt_payload("low rank: blocks beyond the update");
    matrix.right = matrix.left + std::size_t{matrix.rank} * matrix.rows;
    begin += matrix.count();
    first_value += matrix.values();
  }
  if (begin != elements) return corrupt_payload("low rank: blocks do not cover the update");
  return matrices;
}

// Factors may be finite while their product is not. Half the range is left for the rounding of its
// sums.
bool product_is_finite(const FactoredMatrix& matrix, std::span<const float> factors) {
  const std::size_t left_size = matrix.right - matrix.left;
  const std::size_t right_size = std::size_t{matrix.rank} * matrix.columns;
  const float left = kernels::largest_magnitude(factors.subspan(matrix.left, left_size));
  const float right = kernels::largest_magnitude(factors.subspan(matrix.right, right_size));
  const double bound = static_cast<double>(left) * static_cast<double>(right) * matrix.rank;
  return bound < std::numeric_limits<float>::max() / 2;
}

}  // namespace

Status PayloadView::read_low_rank(ByteReader& in) {
  if (header_.format != ValueFormat::kFp32 && header_.format != ValueFormat::kBf16)
    return corrupt_payload("low rank: factors must be fp32 or bf16");
  matrices_ = LONGHAUL_TRY(read_matrices(in, elements()));
  if (!matrices_.empty()) values_ = matrices_.back().left + matrices_.back().values();
  if (values_ > in.remaining() || value_bytes(header_.format, values_) != in.remaining())
    return corrupt_payload("low rank: wrong length");
  const ByteView bytes = in.bytes(in.remaining());
  LONGHAUL_TRY(check_values(header_.format, bytes, values_));
  factors_.resize(values_);
  decode_values(header_.format, bytes, factors_);
  for (const FactoredMatrix& matrix : matrices_) {
    if (matrix.rank > 0 && !product_is_finite(matrix, factors_))
      return Error{ErrorCode::kNotFinite, "low rank: the product of the factors is not finite"};
  }
  return Done{};
}

void PayloadView::add_low_rank_tile(std::size_t tile, float weight, std::span<float> out,
                                    TileEntries& scratch) const {
  const std::size_t tile_first = tile_begin(tile);
  const std::size_t tile_end = tile_first + out.size();
  // From the matrix that holds the first element: they cover the update, so there is one.
  auto matrix = std::ranges::upper_bound(matrices_, tile_first, {}, &FactoredMatrix::begin) - 1;
  for (; matrix != matrices_.end() && matrix->begin < tile_end; ++matrix) {
    const std::size_t from = std::max(matrix->begin, tile_first);
    const std::size_t to = std::min(matrix->begin + matrix->count(), tile_end);
    add_matrix_part(*matrix, from - matrix->begin, weight,
                    out.subspan(from - tile_first, to - from), scratch);
  }
}

void PayloadView::add_matrix_part(const FactoredMatrix& matrix, std::size_t first, float weight,
                                  std::span<float> out, TileEntries& scratch) const {
  const std::span<const float> factors = factors_;
  if (matrix.rank == 0)
    return kernels::add_scaled(factors.subspan(matrix.left + first, out.size()), weight, out);
  const std::size_t rows = matrix.rows;
  const std::size_t columns = matrix.columns;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t row = (first + done) / columns;
    const std::size_t column = (first + done) % columns;
    const std::size_t here = std::min(columns - column, out.size() - done);
    // The product first, the weight once: the same bits as a decoder that forms the matrix.
    scratch.values.assign(here, 0.0F);
    for (std::size_t r = 0; r < matrix.rank; ++r) {
      const std::span right = factors.subspan(matrix.right + r * columns + column, here);
      kernels::add_scaled(right, factors[matrix.left + r * rows + row], scratch.values);
    }
    kernels::add_scaled(scratch.values, weight, out.subspan(done, here));
    done += here;
  }
}

}  // namespace longhaul
