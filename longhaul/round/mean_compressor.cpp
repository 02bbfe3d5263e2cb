#include "longhaul/round/mean_compressor.h"

#include <algorithm>

#include "longhaul/base/check.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// Names in a state.
constexpr const char* kResidual = "mean_residual";
constexpr const char* kCodec = "mean_codec";

// Sums of two such values are still far from the end of what a float can hold.
constexpr float kAbsurdSum = 1e37F;

constexpr CodecOptions kDense{.kind = CodecKind::kDense, .values = ValueFormat::kFp32};

}  // namespace

MeanCompressor::MeanCompressor(const Options& options, Workers& workers)
    : keep_ratio_(options.keep_ratio),
      seed_(options.seed),
      dense_step_(options.dense_step),
      codec_(make_codec(options.codec, options.layers, workers)),
      dense_(make_codec(kDense, {}, workers)),
      residual_(options.elements, 0.0F) {}

void MeanCompressor::compress(RoundMean& mean, std::uint64_t step) {
  std::vector<float> values(residual_.size());
  add(mean.payload.view(), 1.0F, values);
  drop_if_absurd(values);
  Codec& codec = dense_step_ == step ? *dense_ : *codec_;
  mean.payload = CheckedPayload::of_sealed(codec.take({.residual = residual_,
                                                       .increment = values,
                                                       .keep_ratio = keep_ratio_,
                                                       .seed = seed_of_round(seed_, step)}),
                                           values.size());
  std::ranges::fill(values, 0.0F);
  add(mean.payload.view(), 1.0F, values);
  codec_->learn(values);
  for (DownLoad& down : mean.down) down = {.way = WayDown::kTwoWay, .bytes = mean.payload.size()};
}

// Each update is finite, but what is held back of many need not be. No model outlives such values;
// the hub does.
void MeanCompressor::drop_if_absurd(std::span<float> mean) {
  const float largest =
      std::max(kernels::largest_magnitude(residual_), kernels::largest_magnitude(mean));
  if (largest < kAbsurdSum) return;
  std::ranges::fill(residual_, 0.0F);
  std::ranges::fill(mean, 0.0F);
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
  for (const std::span<const float> values : {*residual, *codec}) {
    Status finite = check_finite(values);
    if (!finite.ok()) return std::move(finite).error().within(kResidual);
  }
  std::ranges::copy(*residual, residual_.begin());
  std::ranges::copy(*codec, codec_->state().begin());
  return Done{};
}

}  // namespace longhaul
