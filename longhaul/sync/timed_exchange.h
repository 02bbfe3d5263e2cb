// An exchange that notes when updates were sent, when means arrived, and how long one waited.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

class TimedExchange final : public Exchange {
 public:
  // Both outlive it.
  TimedExchange(Exchange& exchange, const Clock& clock) : exchange_(exchange), clock_(clock) {}

  void submit(Update update) override {
    sent_ = clock_.now();
    exchange_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    const TimePoint begin = clock_.now();
    Result<Mean> mean = exchange_.collect(round, deadline);
    waited_ += clock_.now() - begin;
    if (mean.ok()) {
      arrived_ = mean->arrived;
      merged_ = mean->round;
    }
    return mean;
  }

  // Each since its last call.
  [[nodiscard]] Seconds take_waited() { return std::exchange(waited_, Seconds{}); }
  // The time of the last update; nothing: none was sent.
  [[nodiscard]] std::optional<TimePoint> take_sent() { return std::exchange(sent_, std::nullopt); }
  // The round of the last mean, and when that arrived.
  [[nodiscard]] std::optional<RoundId> take_merged() {
    return std::exchange(merged_, std::nullopt);
  }
  [[nodiscard]] std::optional<TimePoint> take_arrived() {
    return std::exchange(arrived_, std::nullopt);
  }

 private:
  Exchange& exchange_;
  const Clock& clock_;
  Seconds waited_{};
  std::optional<TimePoint> sent_;
  std::optional<RoundId> merged_;
  std::optional<TimePoint> arrived_;
};

}  // namespace longhaul
