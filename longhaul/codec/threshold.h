// Every element whose magnitude reaches a fixed threshold, however many that are.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

class Threshold final : public Codec {
 public:
  Threshold(float threshold, ValueFormat format, Workers& workers)
      : threshold_(threshold), format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  // The values decide how much is sent: for planning, `keep_ratio` says what share is expected to
  // reach the threshold.
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

 private:
  float threshold_;
  ValueFormat format_;
  Workers& workers_;
};

}  // namespace longhaul
