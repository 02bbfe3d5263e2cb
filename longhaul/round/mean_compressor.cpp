#include "longhaul/round/mean_compressor.h"

#include <algorithm>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"

namespace longhaul {

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

}  // namespace longhaul
