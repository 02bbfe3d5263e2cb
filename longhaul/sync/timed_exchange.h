// An exchange, and how long one has waited for its means.
#pragma once

#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

class TimedExchange final : public Exchange {
 public:
  // Both outlive it.
  TimedExchange(Exchange& exchange, const Clock& clock) : exchange_(exchange), clock_(clock) {}

  void submit(Update update) override { exchange_.submit(std::move(update)); }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    const TimePoint begin = clock_.now();
    Result<Mean> mean = exchange_.collect(round, deadline);
    waited_ += clock_.now() - begin;
    return mean;
  }

  // Since the last call.
  [[nodiscard]] Seconds take_waited() { return std::exchange(waited_, Seconds{}); }

 private:
  Exchange& exchange_;
  const Clock& clock_;
  Seconds waited_{};
};

}  // namespace longhaul
