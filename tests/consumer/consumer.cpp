// Compresses a vector and adds it up again. Exits with 0 if nothing was lost.
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"

int main() {
  longhaul::Workers workers(1);
  const auto codec = longhaul::make_codec(longhaul::parse_codec("top_k/fp32").value(), {}, workers);
  const std::vector<float> gradient{3, -1, 2, 0.5F};
  std::vector<float> sum(gradient.size());
  const auto payload = codec->take({.residual = sum, .increment = gradient, .keep_ratio = 0.5});
  const auto view = longhaul::PayloadView::parse(payload, sum.size());
  if (!view.ok()) return 1;
  longhaul::add(*view, 1.0F, sum);
  return sum == gradient ? 0 : 1;
}
