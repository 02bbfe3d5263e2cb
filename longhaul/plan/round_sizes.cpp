#include "longhaul/plan/round_sizes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

constexpr double kRowsPerDecade = 341;  // ratios 0.7 % apart
constexpr CodecOptions kUnionForm{.kind = CodecKind::kTopK, .values = ValueFormat::kFp32};

double expected_bytes(const CodecOptions& spec, const LayerTable& layers, std::size_t elements,
                      double keep_ratio) {
  Workers alone(1);
  return make_codec(spec, layers, alone)->expected_bytes(elements, keep_ratio);
}

// Share of the elements that at least one of n replicas sends.
double union_share(CodecKind kind, double keep_ratio, double n) {
  constexpr double kCocktailSubset = 5;  // times the ratio: all draw the same subset
  const double independent = 1 - std::pow(1 - keep_ratio, n);
  switch (kind) {
    case CodecKind::kTopK:
    case CodecKind::kChunkTopK:
    case CodecKind::kThreshold:
      return independent;
    case CodecKind::kRandomK:
      return keep_ratio;
    case CodecKind::kCocktail:
      return std::min(independent, kCocktailSubset * keep_ratio);
    case CodecKind::kDense:
    case CodecKind::kSign:
    case CodecKind::kLowRank:
    case CodecKind::kSharedLowRank:
      break;
  }
  return 1;
}

}  // namespace

RoundSizes::RoundSizes(const CodecOptions& codec, std::size_t elements, std::size_t replicas,
                       const RatioRange& limits, std::optional<WayDown> way, LayerTable layers)
    : codec_(codec),
      elements_(elements),
      replicas_(replicas),
      way_(way),
      layers_(std::move(layers)) {
  LONGHAUL_CHECK(limits.least > 0 && limits.least <= limits.most && limits.most <= 1);
  LONGHAUL_CHECK(elements > 0 && replicas > 0);
  table_.push_back(exact(limits.least));
  const double rows = kRowsPerDecade * std::log10(limits.most / limits.least);
  for (double row = std::ceil(rows - 1); row >= 0; --row) {
    const double ratio = limits.most * std::pow(10.0, -row / kRowsPerDecade);
    if (ratio > limits.least) table_.push_back(exact(ratio));
  }
  // A larger ratio is never cheaper: where the expectation says so by a byte, it is rounding.
  for (std::size_t row = 1; row < table_.size(); ++row) {
    table_[row].up = std::max(table_[row].up, table_[row - 1].up);
    table_[row].down = std::max(table_[row].down, table_[row - 1].down);
  }
}

RoundSizes RoundSizes::with(std::size_t replicas) const {
  const RatioRange limits{.least = table_.front().keep_ratio, .most = table_.back().keep_ratio};
  return {codec_, elements_, replicas, limits, way_, layers_};
}

double RoundSizes::bytes_up(double keep_ratio) const {
  return expected_bytes(codec_, layers_, elements_, keep_ratio);
}

double RoundSizes::bytes_down(double keep_ratio, WayDown way) const {
  return bytes_down(keep_ratio, way, bytes_up(keep_ratio));
}

double RoundSizes::bytes_down(double keep_ratio, WayDown way, double bytes_up) const {
  const auto n = static_cast<double>(replicas_);
  switch (way) {
    case WayDown::kDense:
      break;
    case WayDown::kUnion:
      return expected_bytes(kUnionForm, {}, elements_,
                            std::max(union_share(codec_.kind, keep_ratio, n), keep_ratio));
    case WayDown::kForwarded:
      return (n - 1) * bytes_up;
    case WayDown::kTwoWay:
      return bytes_up;
  }
  return static_cast<double>(kPayloadHeaderBytes) + dense_bytes();
}

RoundSize RoundSizes::exact(double keep_ratio) const {
  RoundSize size{
      .keep_ratio = keep_ratio, .up = bytes_up(keep_ratio), .way = way_.value_or(WayDown::kDense)};
  size.down = bytes_down(keep_ratio, size.way, size.up);
  if (way_) return size;
  for (const WayDown way : {WayDown::kUnion, WayDown::kForwarded}) {
    const double down = bytes_down(keep_ratio, way, size.up);
    if (down >= size.down) continue;
    size.down = down;
    size.way = way;
  }
  return size;
}

RoundSize RoundSizes::at(double keep_ratio) const {
  const auto above = std::ranges::lower_bound(table_, keep_ratio, {}, &RoundSize::keep_ratio);
  if (above == table_.begin()) return table_.front();
  if (above == table_.end()) return table_.back();
  const RoundSize& below = *std::prev(above);
  const double share = (keep_ratio - below.keep_ratio) / (above->keep_ratio - below.keep_ratio);
  return {.keep_ratio = keep_ratio,
          .up = below.up + share * (above->up - below.up),
          .down = below.down + share * (above->down - below.down),
          .way = below.way};
}

}  // namespace longhaul
