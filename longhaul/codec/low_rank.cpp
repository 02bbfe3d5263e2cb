#include "longhaul/codec/low_rank.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// The first dimension against all others, as PowerSGD does with convolutions.
std::uint32_t rows_of(const Layer& layer) {
  if (layer.shape.size() < 2 || layer.count == 0) return 1;
  const auto rows = static_cast<std::size_t>(layer.shape[0]);
  LONGHAUL_CHECK(rows > 0 && layer.count % rows == 0);
  return static_cast<std::uint32_t>(rows);
}

// Where the factors of a matrix begin: the left one among all left ones, the right one among all
// right ones. An empty table stands for one vector, which gains nothing.
std::vector<FactoredMatrix> matrices_of(const LayerTable& layers, std::uint32_t rank) {
  std::vector<FactoredMatrix> matrices;
  std::size_t begin = 0;
  std::size_t left = 0;
  std::size_t right = 0;
  for (const Layer& layer : layers) {
    LONGHAUL_CHECK_EQ(layer.offset, begin);
    const std::uint32_t rows = rows_of(layer);
    const auto columns = static_cast<std::uint32_t>(layer.count / rows);
    const std::uint32_t used = std::min({rank, rows, columns});
    const bool gains = (std::size_t{rows} + columns) * used < layer.count;
    matrices.push_back({.begin = begin,
                        .rows = rows,
                        .columns = columns,
                        .rank = gains ? used : 0,
                        .left = left,
                        .right = right});
    begin += layer.count;
    if (!gains) continue;
    left += std::size_t{used} * rows;
    right += std::size_t{used} * columns;
  }
  std::erase_if(matrices, [](const FactoredMatrix& matrix) { return matrix.columns == 0; });
  return matrices;
}

std::size_t left_floats(std::span<const FactoredMatrix> matrices) {
  if (matrices.empty()) return 0;
  return matrices.back().left + std::size_t{matrices.back().rank} * matrices.back().rows;
}

std::size_t right_floats(std::span<const FactoredMatrix> matrices) {
  if (matrices.empty()) return 0;
  return matrices.back().right + std::size_t{matrices.back().rank} * matrices.back().columns;
}

// Those of an update: without layers it is one vector.
std::vector<FactoredMatrix> matrices_in(std::size_t elements,
                                        const std::vector<FactoredMatrix>& known) {
  if (!known.empty()) {
    LONGHAUL_CHECK_EQ(elements, known.back().begin + known.back().count());
    return known;
  }
  if (elements == 0) return {};
  LONGHAUL_CHECK_LE(elements, std::size_t{std::numeric_limits<std::uint32_t>::max()});
  return {{.rows = 1, .columns = static_cast<std::uint32_t>(elements)}};
}

double factor_bytes(std::span<const FactoredMatrix> matrices, ValueFormat format) {
  std::size_t values = 0;
  for (const FactoredMatrix& matrix : matrices) values += matrix.values();
  return static_cast<double>(kPayloadHeaderBytes + 4 + 12 * matrices.size() +
                             value_bytes(format, values));
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
  const float largest = finite ? kernels::largest_magnitude(column) : 0.0F;
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

// A decoder refuses factors whose product might overflow. The other factor is at most one. Both are
// a little larger once they are rounded.
bool product_is_safe(std::span<const float> factor, std::size_t rank) {
  if (kernels::first_non_finite(factor) < factor.size()) return false;
  const float largest = kernels::largest_magnitude(factor);
  return largest < 0.25F * std::numeric_limits<float>::max() / static_cast<float>(rank);
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

// Matrix · basis: one column of `rows` for each of the basis.
std::vector<float> times(const FactoredMatrix& matrix, std::span<const float> values,
                         std::span<const float> basis) {
  const std::size_t rows = matrix.rows;
  const std::size_t columns = matrix.columns;
  std::vector<float> product(matrix.rank * rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t r = 0; r < matrix.rank; ++r) {
      product[r * rows + row] =
          kernels::dot(values.subspan(row * columns, columns), basis.subspan(r * columns, columns));
    }
  }
  return product;
}

// Matrixᵀ · basis.
std::vector<float> transposed_times(const FactoredMatrix& matrix, std::span<const float> values,
                                    std::span<const float> basis) {
  const std::size_t rows = matrix.rows;
  const std::size_t columns = matrix.columns;
  std::vector<float> product(matrix.rank * columns, 0.0F);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t r = 0; r < matrix.rank; ++r) {
      kernels::add_scaled(values.subspan(row * columns, columns), basis[r * rows + row],
                          std::span(product).subspan(r * columns, columns));
    }
  }
  return product;
}

// Orthonormal, also where columns have vanished: others take their place.
void make_basis(std::span<float> columns, std::size_t length) {
  orthonormalise(columns, length);
  bool is_whole = true;
  for (std::size_t first = 0; first < columns.size(); first += length) {
    const std::span column = columns.subspan(first, length);
    if (kernels::dot(column, column) > 0.0F) continue;
    for (std::size_t i = 0; i < length; ++i) column[i] = start_value(first + i);
    is_whole = false;
  }
  if (!is_whole) orthonormalise(columns, length);
}

using AppendFactors =
    std::function<void(const FactoredMatrix&, std::span<const float>, std::vector<float>&)>;

// The factors of all matrices as one payload, whose values leave the residual.
ByteBuffer take_factors(const TakeOptions& request, const std::vector<FactoredMatrix>& known,
                        ValueFormat format, const AppendFactors& append) {
  const std::size_t elements = request.residual.size();
  request.feed(0, elements);
  const std::vector<FactoredMatrix> matrices = matrices_in(elements, known);
  ByteWriter out;
  std::vector<float> factors;
  out.u32(static_cast<std::uint32_t>(matrices.size()));
  for (const FactoredMatrix& matrix : matrices) {
    out.u32(matrix.rows);
    out.u32(matrix.columns);
    out.u32(matrix.rank);
    const std::span<const float> values = request.residual.subspan(matrix.begin, matrix.count());
    if (matrix.rank == 0) {
      factors.insert(factors.end(), values.begin(), values.end());
    } else {
      append(matrix, values, factors);
    }
  }
  encode_values(format, factors, out.extend(value_bytes(format, factors.size())));
  const ByteBuffer body = std::move(out).release();
  const PayloadHeader header{.kind = PayloadKind::kLowRank, .format = format, .elements = elements};
  ByteBuffer payload = seal_payload(header, {&body, 1});
  // The receivers get the decoder's output, so exactly that is removed from the residual.
  add(PayloadView::of_sealed(payload, elements), -1.0F, request.residual);
  return payload;
}

void append_both(std::span<const float> left, std::span<const float> right,
                 std::vector<float>& factors) {
  factors.insert(factors.end(), left.begin(), left.end());
  factors.insert(factors.end(), right.begin(), right.end());
}

}  // namespace

LowRank::LowRank(const CodecOptions& options, const LayerTable& layers)
    : options_(options), matrices_(matrices_of(layers, options.rank)) {
  LONGHAUL_CHECK(options.values == ValueFormat::kFp32 || options.values == ValueFormat::kBf16);
  if (options.kind == CodecKind::kLowRank) {
    state_.resize(right_floats(matrices_));
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] = start_value(i);
    return;
  }
  state_.resize(left_floats(matrices_) + right_floats(matrices_) + 1);
  for (const FactoredMatrix& matrix : matrices_) {
    if (matrix.rank == 0) continue;
    make_basis(left_of(matrix), matrix.rows);
    make_basis(right_of(matrix), matrix.columns);
  }
}

std::span<float> LowRank::left_of(const FactoredMatrix& matrix) {
  LONGHAUL_CHECK(shares_state());
  return std::span(state_).subspan(matrix.left, std::size_t{matrix.rank} * matrix.rows);
}

std::span<float> LowRank::right_of(const FactoredMatrix& matrix) {
  const std::size_t first = shares_state() ? left_floats(matrices_) : 0;
  return std::span(state_).subspan(first + matrix.right, std::size_t{matrix.rank} * matrix.columns);
}

void LowRank::append_own_factors(const FactoredMatrix& matrix, std::span<const float> values,
                                 std::vector<float>& factors) {
  const std::span basis = right_of(matrix);
  std::vector<float> left = times(matrix, values, basis);
  orthonormalise(left, matrix.rows);
  std::vector<float> right = transposed_times(matrix, values, left);
  if (product_is_safe(right, matrix.rank)) {
    remember(right, matrix.columns, basis);
  } else {  // all of it stays in the residual
    std::ranges::fill(left, 0.0F);
    std::ranges::fill(right, 0.0F);
  }
  append_both(left, right, factors);
}

void LowRank::append_shared_factors(const FactoredMatrix& matrix, std::span<const float> values,
                                    std::vector<float>& factors) {
  const bool is_left_fixed = std::fmod(state_.back(), 2.0F) == 1.0F;
  const std::span<const float> left = left_of(matrix);
  const std::span<const float> right = right_of(matrix);
  std::vector<float> free =
      is_left_fixed ? transposed_times(matrix, values, left) : times(matrix, values, right);
  if (!product_is_safe(free, matrix.rank)) std::ranges::fill(free, 0.0F);
  append_both(is_left_fixed ? left : free, is_left_fixed ? free : right, factors);
}

ByteBuffer LowRank::take(const TakeOptions& request) {
  return take_factors(request, matrices_, options_.values,
                      [this](const FactoredMatrix& matrix, std::span<const float> values,
                             std::vector<float>& factors) {
                        if (shares_state()) return append_shared_factors(matrix, values, factors);
                        append_own_factors(matrix, values, factors);
                      });
}

double LowRank::expected_bytes(std::size_t elements, double /*keep_ratio*/) const {
  return factor_bytes(matrices_in(elements, matrices_), options_.values);
}

// A step of power iteration with the mean. A mean of zeros spans nothing, so there is nothing to
// learn.
void LowRank::learn(std::span<const float> mean) {
  if (!shares_state() || kernels::largest_magnitude(mean) == 0.0F) return;
  for (const FactoredMatrix& matrix : matrices_) {
    if (matrix.rank == 0) continue;
    const std::span<const float> values = mean.subspan(matrix.begin, matrix.count());
    std::vector<float> left = times(matrix, values, right_of(matrix));
    make_basis(left, matrix.rows);
    std::vector<float> right = transposed_times(matrix, values, left);
    make_basis(right, matrix.columns);
    std::ranges::copy(left, left_of(matrix).begin());
    std::ranges::copy(right, right_of(matrix).begin());
  }
  state_.back() = std::fmod(state_.back() + 1.0F, 2.0F);
}

namespace {

bool are_alike(const FactoredMatrix& a, const FactoredMatrix& b) {
  return a.rows == b.rows && a.columns == b.columns && a.rank == b.rank;
}

std::span<const float> factor_of(const PayloadView& payload, const FactoredMatrix& matrix,
                                 bool is_left) {
  const std::size_t first = is_left ? matrix.left : matrix.right;
  return payload.factors().subspan(
      first, std::size_t{matrix.rank} * (is_left ? matrix.rows : matrix.columns));
}

// Is that factor of every matrix the same in all of them?
bool have_in_common(std::span<const PayloadView* const> payloads, bool is_left) {
  const PayloadView& first = *payloads.front();
  return std::ranges::all_of(payloads, [&](const PayloadView* payload) {
    return std::ranges::all_of(first.matrices(), [&](const FactoredMatrix& matrix) {
      return std::ranges::equal(factor_of(*payload, matrix, is_left),
                                factor_of(first, matrix, is_left));
    });
  });
}

}  // namespace

std::optional<ByteBuffer> sum_of_factors(std::span<const WeightedPayload> payloads) {
  std::vector<const PayloadView*> views;
  std::vector<float> weights;
  for (const WeightedPayload& one : payloads) {
    if (one.payload.empty()) continue;
    if (one.payload.view().header().kind != PayloadKind::kLowRank) return std::nullopt;
    views.push_back(&one.payload.view());
    weights.push_back(one.weight);
  }
  if (views.empty()) return std::nullopt;
  const PayloadView& first = *views.front();
  for (const PayloadView* view : views) {
    if (!std::ranges::equal(view->matrices(), first.matrices(), are_alike)) return std::nullopt;
  }
  const bool is_left_fixed = have_in_common(views, true);
  if (!is_left_fixed && !have_in_common(views, false)) return std::nullopt;
  std::vector<float> sum(first.factors().size(), 0.0F);
  for (std::size_t i = 0; i < views.size(); ++i)
    kernels::add_scaled(views[i]->factors(), weights[i], sum);
  ByteWriter out;
  out.u32(static_cast<std::uint32_t>(first.matrices().size()));
  for (const FactoredMatrix& matrix : first.matrices()) {
    out.u32(matrix.rows);
    out.u32(matrix.columns);
    out.u32(matrix.rank);
    if (matrix.rank == 0) continue;
    const std::span<const float> fixed = factor_of(first, matrix, is_left_fixed);
    std::ranges::copy(fixed, sum.begin() + (fixed.data() - first.factors().data()));
  }
  encode_values(ValueFormat::kFp32, sum, out.extend(value_bytes(ValueFormat::kFp32, sum.size())));
  const ByteBuffer body = std::move(out).release();
  const PayloadHeader header{
      .kind = PayloadKind::kLowRank, .format = ValueFormat::kFp32, .elements = first.elements()};
  return seal_payload(header, {&body, 1});
}

}  // namespace longhaul
