// Sends 1 % of a gradient and keeps account of the rest.
// Run: build/release/bin/compress_update. Prints how small the update became and that nothing was
// lost.
#include <cstdio>
#include <random>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"

int main() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> gradient(1'000'000);
  for (float& g : gradient) g = normal(random);

  longhaul::Workers workers(2);
  const auto codec = longhaul::make_codec(longhaul::parse_codec("top_k/bf16").value(), {}, workers);
  std::vector<float> residual(gradient.size());
  const longhaul::ByteBuffer payload =
      codec->take({.residual = residual, .increment = gradient, .keep_ratio = 0.01});

  // The other side: check every byte, then add.
  std::vector<float> sum(gradient.size());
  const auto view = longhaul::PayloadView::parse(payload, sum.size());
  if (!view.ok()) return std::puts(view.error().message.c_str()), 1;
  longhaul::add(*view, 1.0F, sum);

  double lost = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) lost += gradient[i] - sum[i] - residual[i];
  std::printf("%zu bytes instead of %zu; sent + held back - gradient = %g\n", payload.size(),
              gradient.size() * sizeof(float), lost);
  return lost == 0 ? 0 : 1;
}
