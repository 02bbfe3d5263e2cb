// What every codec owes its users, as checks that tests apply to one call of take().
#pragma once

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <span>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"

namespace longhaul {

// What went into take(), what its payload decodes to, what it left behind.
struct Transfer {
  std::vector<float> residual_before;
  std::vector<float> increment;  // empty: none
  float residual_decay = 1.0F;
  std::vector<float> decoded;
  std::vector<float> residual_after;

  // decay·e + g
  [[nodiscard]] double came_in(std::size_t i) const {
    const double increment_here = increment.empty() ? 0.0 : static_cast<double>(increment[i]);
    return static_cast<double>(residual_decay) * static_cast<double>(residual_before[i]) +
           increment_here;
  }
};

// Three floats are rounded on the way: decay·e, that + g, and what is left after sending. Each is
// off by at most 2^-24 of itself, or by half a denormal. No format adds to this: what a format
// loses stays in the residual.
inline double rounding_bound(const Transfer& transfer, std::size_t i) {
  const double product = static_cast<double>(transfer.residual_decay) *
                         static_cast<double>(transfer.residual_before[i]);
  const double magnitudes = std::abs(product) + std::abs(transfer.came_in(i)) +
                            std::abs(static_cast<double>(transfer.residual_after[i]));
  return 0x1.001p-24 * magnitudes + 2.0 * static_cast<double>(FLT_TRUE_MIN);
}

// decoded + residual after = decay·e + g, element by element and in sum.
inline testing::AssertionResult conserves(const Transfer& transfer) {
  double in = 0.0;
  double out = 0.0;
  double magnitude = 0.0;
  for (std::size_t i = 0; i < transfer.residual_before.size(); ++i) {
    const double came_in = transfer.came_in(i);
    const double went_out =
        static_cast<double>(transfer.decoded[i]) + static_cast<double>(transfer.residual_after[i]);
    // Written so that NaN fails.
    if (!(std::abs(went_out - came_in) <= rounding_bound(transfer, i))) {
      return testing::AssertionFailure()
             << "element " << i << ": " << came_in << " came in, sent " << transfer.decoded[i]
             << ", kept " << transfer.residual_after[i];
    }
    in += came_in;
    out += went_out;
    magnitude += std::abs(came_in);
  }
  if (!(std::abs(in - out) <= 1e-5 * magnitude + 1e-40)) {
    return testing::AssertionFailure() << "sum: " << in << " came in, " << out << " went out";
  }
  return testing::AssertionSuccess();
}

// Each element either stayed as it was or left nothing behind.
inline testing::AssertionResult leaves_nothing_of_what_it_sent(const Transfer& transfer) {
  for (std::size_t i = 0; i < transfer.decoded.size(); ++i) {
    if (transfer.decoded[i] != 0.0F && transfer.residual_after[i] != 0.0F) {
      return testing::AssertionFailure() << "element " << i << ": sent " << transfer.decoded[i]
                                         << " and kept " << transfer.residual_after[i];
    }
  }
  return testing::AssertionSuccess();
}

// The residual is not larger than what came in, in the Euclidean norm.
inline testing::AssertionResult contracts(const Transfer& transfer) {
  double before = 0.0;
  double after = 0.0;
  for (std::size_t i = 0; i < transfer.decoded.size(); ++i) {
    before += transfer.came_in(i) * transfer.came_in(i);
    after += static_cast<double>(transfer.residual_after[i]) *
             static_cast<double>(transfer.residual_after[i]);
  }
  if (after <= before * (1.0 + 1e-6)) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << "norm grew from " << std::sqrt(before) << " to " << std::sqrt(after);
}

// What a payload decodes to; a test failure and zeros where it is refused.
inline std::vector<float> decode(ByteView payload, std::size_t elements) {
  std::vector<float> decoded(elements, 0.0F);
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  EXPECT_TRUE(view.ok()) << (view.ok() ? "" : view.error().message);
  if (view.ok()) add(*view, 1.0F, decoded);
  return decoded;
}

// One take() and its decoding, as a Transfer.
inline Transfer run_take(Codec& codec, std::vector<float> residual, std::vector<float> increment,
                         float decay, double keep_ratio) {
  Transfer transfer{.residual_before = residual,
                    .increment = std::move(increment),
                    .residual_decay = decay,
                    .decoded = {},
                    .residual_after = std::move(residual)};
  const ByteBuffer payload = codec.take({.residual = transfer.residual_after,
                                         .increment = transfer.increment,
                                         .residual_decay = decay,
                                         .keep_ratio = keep_ratio,
                                         .seed = 7});
  transfer.decoded = decode(payload, transfer.residual_after.size());
  return transfer;
}

}  // namespace longhaul
