// Every element, in any value format; with one bit per element this is the sign codec.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

class Dense final : public Codec {
 public:
  Dense(ValueFormat format, Workers& workers) : format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

 private:
  ValueFormat format_;
  Workers& workers_;
};

}  // namespace longhaul
