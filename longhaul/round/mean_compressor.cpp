#include "longhaul/round/mean_compressor.h"

#include <algorithm>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// Names in a state.
constexpr const char* kResidual = "mean_residual";
constexpr const char* kCodec = "mean_codec";

}  // namespace

MeanCompressor::MeanCompressor(const CodecSpec& spec, const LayerTable& layers,
                               std::size_t elements, Workers& workers)
    : codec_(make_codec(spec, layers, workers)), residual_(elements, 0.0F) {}

void MeanCompressor::compress(RoundMean& mean, double keep_ratio, std::uint64_t seed) {
  LONGHAUL_CHECK_EQ(mean.values.size(), residual_.size());
  mean.payload = codec_->take(
      {.residual = residual_, .increment = mean.values, .keep_ratio = keep_ratio, .seed = seed});
  std::ranges::fill(mean.values, 0.0F);
  add(PayloadView::parse(mean.payload, mean.values.size()).value(), 1.0F, mean.values);
  for (DownLoad& down : mean.down) down = {.way = WayDown::kTwoWay, .bytes = mean.payload.size()};
}

void MeanCompressor::save(State& state) const {
  state.tensors[kResidual] = residual_;
  const std::span<const float> codec = codec_->state();
  state.tensors[kCodec].assign(codec.begin(), codec.end());
}

Status MeanCompressor::load(const State& state) {
  const auto residual = state.tensor(kResidual, residual_.size());
  const auto codec = state.tensor(kCodec, codec_->state().size());
  if (!residual.ok()) return residual.error();
  if (!codec.ok()) return codec.error();
  std::ranges::copy(*residual, residual_.begin());
  std::ranges::copy(*codec, codec_->state().begin());
  return Done{};
}

}  // namespace longhaul
