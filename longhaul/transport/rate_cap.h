// Holds what is sent to a rate. Pure: the time comes in from outside.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/transport/cargo.h"

namespace longhaul {

// Holds bulk data below a rate.
// Between two moments no more passes than the rate carries in that time, what it carries in kSaved,
// and one chunk.
class RateCap {
 public:
  // An unused allowance is not lost at once: the sender may look late.
  static constexpr Seconds kSaved{0.1};

  // Precondition: the rate is above zero.
  explicit RateCap(Bandwidth rate) : bytes_per_second_(rate.bytes_per_second) {}

  void on_tick(TimePoint now) {
    if (last_) {
      const Seconds passed = now - *last_;
      left_ =
          std::min(left_ + bytes_per_second_ * passed.count(), bytes_per_second_ * kSaved.count());
    }
    last_ = now;
  }
  [[nodiscard]] bool may_send() const { return left_ > 0; }
  void sent(std::size_t bytes) { left_ -= static_cast<double>(bytes); }

  // Larger ones would come in bursts.
  [[nodiscard]] std::size_t most_chunk_bytes() const {
    return std::max(kLeastChunkBytes,
                    static_cast<std::size_t>(bytes_per_second_ * kSaved.count() / 2));
  }

 private:
  double bytes_per_second_;
  double left_ = 0;  // below zero: owed
  std::optional<TimePoint> last_;
};

}  // namespace longhaul
