#include "longhaul/codec/low_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

struct Shape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// The first dimension against all others, as PowerSGD does with convolutions.
Shape matrix_shape(const Layer& layer) {
  const auto columns_of = [](std::size_t count, std::size_t rows) {
    return static_cast<std::uint32_t>(count / rows);
  };
  if (layer.shape.size() < 2 || layer.count == 0)
    return {.rows = 1, .columns = columns_of(layer.count, 1)};
  const auto rows = static_cast<std::size_t>(layer.shape[0]);
  LONGHAUL_CHECK(rows > 0 && layer.count % rows == 0);
  return {.rows = static_cast<std::uint32_t>(rows), .columns = columns_of(layer.count, rows)};
}

// A fixed start that is not orthogonal to anything in particular.
float start_value(std::size_t i) {
  const std::uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15U;
  return static_cast<float>(static_cast<std::int32_t>(mixed >> 32)) * 0x1p-31F;
}

// Scales to a largest magnitude of one, so that squares of what follows neither overflow nor
// vanish. False, and all zeros, where that cannot be done.
bool scale_to_one(std::span<float> column) {
  const bool finite = kernels::first_non_finite(column) == column.size();
  const float largest = finite ? kernels::magnitude_range(column).max_magnitude : 0.0F;
  for (float& v : column) v = largest > 0.0F ? v / largest : 0.0F;
  return largest > 0.0F;
}

// A column of zeros leaves no direction to start from: its old one is kept.
void remember(std::span<const float> right, std::size_t length, std::span<float> basis) {
  for (std::size_t first = 0; first < right.size(); first += length) {
    std::vector<float> column(right.begin() + static_cast<std::ptrdiff_t>(first),
                              right.begin() + static_cast<std::ptrdiff_t>(first + length));
    if (scale_to_one(column)) std::ranges::copy(column, basis.subspan(first).begin());
  }
}

// A decoder refuses factors whose product might overflow.
bool product_is_safe(std::span<const float> right, std::size_t rank) {
  if (kernels::first_non_finite(right) < right.size()) return false;
  const float largest =
      kernels::magnitude_range(right).max_magnitude;  // the left factor is at most one
  return largest < 0.5F * std::numeric_limits<float>::max() / static_cast<float>(rank);
}

// Columns of length `length` made orthonormal, twice over, so that rounding does not spoil it. A
// column that vanishes stays zero.
void orthonormalise(std::span<float> columns, std::size_t length) {
  const std::size_t rank = columns.size() / length;
  for (std::size_t r = 0; r < rank; ++r) {
    const std::span column = columns.subspan(r * length, length);
    if (!scale_to_one(column)) continue;
    const float before = std::sqrt(kernels::dot(column, column));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t q = 0; q < r; ++q) {
        const std::span other = columns.subspan(q * length, length);
        kernels::add_scaled(other, -kernels::dot(column, other), column);
      }
    }
    const float norm = std::sqrt(kernels::dot(column, column));
    const bool vanished = !(norm > 1e-6F * before) || !std::isfinite(norm);
    for (float& v : column) v = vanished ? 0.0F : v / norm;
  }
}

}  // namespace

LowRank::LowRank(std::uint32_t rank, ValueFormat format, const LayerTable& layers)
    : format_(format) {
  LONGHAUL_CHECK(format == ValueFormat::kFp32 || format == ValueFormat::kBf16);
  std::size_t begin = 0;
  std::size_t basis = 0;
  for (const Layer& layer : layers) {
    LONGHAUL_CHECK_EQ(layer.offset, begin);
    const auto [rows, columns] = matrix_shape(layer);
    const std::uint32_t used = std::min({rank, rows, columns});
    const bool gains = (std::size_t{rows} + columns) * used < layer.count;
    matrices_.push_back({.begin = begin,
                         .rows = rows,
                         .columns = columns,
                         .rank = gains ? used : 0,
                         .basis = basis});
    begin += layer.count;
    if (gains) basis += std::size_t{used} * columns;
  }
  std::erase_if(matrices_, [](const Matrix& matrix) { return matrix.columns == 0; });
  bases_.resize(basis);
  for (std::size_t i = 0; i < basis; ++i) bases_[i] = start_value(i);
}

std::vector<LowRank::Matrix> LowRank::matrices_for(std::size_t elements) const {
  if (!matrices_.empty()) {
    const Matrix& last = matrices_.back();
    LONGHAUL_CHECK_EQ(elements, last.begin + std::size_t{last.rows} * last.columns);
    return matrices_;
  }
  if (elements == 0) return {};
  LONGHAUL_CHECK_LE(elements, std::size_t{std::numeric_limits<std::uint32_t>::max()});
  return {{.rows = 1, .columns = static_cast<std::uint32_t>(elements)}};
}

void LowRank::append_factors(const Matrix& matrix, std::span<const float> values,
                             std::vector<float>& factors) {
  if (matrix.rank == 0) {
    factors.insert(factors.end(), values.begin(), values.end());
    return;
  }
  const std::size_t rows = matrix.rows;
  const std::size_t columns = matrix.columns;
  const std::span basis = std::span(bases_).subspan(matrix.basis, matrix.rank * columns);
  std::vector<float> left(matrix.rank * rows);
  std::vector<float> right(basis.size(), 0.0F);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t r = 0; r < matrix.rank; ++r) {
      left[r * rows + row] =
          kernels::dot(values.subspan(row * columns, columns), basis.subspan(r * columns, columns));
    }
  }
  orthonormalise(left, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t r = 0; r < matrix.rank; ++r) {
      kernels::add_scaled(values.subspan(row * columns, columns), left[r * rows + row],
                          std::span(right).subspan(r * columns, columns));
    }
  }
  if (product_is_safe(right, matrix.rank)) {
    remember(right, columns, basis);
  } else {  // all of it stays in the residual
    std::ranges::fill(left, 0.0F);
    std::ranges::fill(right, 0.0F);
  }
  factors.insert(factors.end(), left.begin(), left.end());
  factors.insert(factors.end(), right.begin(), right.end());
}

ByteBuffer LowRank::take(const TakeRequest& request) {
  const std::size_t elements = request.residual.size();
  kernels::feed(request.residual, request.feed());
  const std::vector<Matrix> matrices = matrices_for(elements);
  ByteWriter out;
  std::vector<float> factors;
  out.u32(static_cast<std::uint32_t>(matrices.size()));
  for (const Matrix& matrix : matrices) {
    out.u32(matrix.rows);
    out.u32(matrix.columns);
    out.u32(matrix.rank);
    append_factors(
        matrix, request.residual.subspan(matrix.begin, std::size_t{matrix.rows} * matrix.columns),
        factors);
  }
  encode_values(format_, factors, out.extend(value_bytes(format_, factors.size())));
  const ByteBuffer body = std::move(out).release();
  const PayloadHeader header{
      .kind = PayloadKind::kLowRank, .format = format_, .elements = elements};
  ByteBuffer payload = seal_payload(header, {&body, 1});
  // What was sent is what the decoder makes of it, so the decoder says what to remove.
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  LONGHAUL_CHECK(view.ok());
  add(*view, -1.0F, request.residual);
  return payload;
}

double LowRank::expected_bytes(std::size_t elements, double /*keep_ratio*/) const {
  std::size_t bytes = kPayloadHeaderBytes + 4;
  std::size_t values = 0;
  for (const Matrix& matrix : matrices_for(elements)) {
    const std::size_t sides = std::size_t{matrix.rows} + matrix.columns;
    values += matrix.rank == 0 ? std::size_t{matrix.rows} * matrix.columns : sides * matrix.rank;
    bytes += 12;
  }
  return static_cast<double>(bytes + value_bytes(format_, values));
}

}  // namespace longhaul
