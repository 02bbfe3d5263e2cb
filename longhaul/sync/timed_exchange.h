// An exchange that notes when updates were sent, when means arrived, and how long one waited.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

// When the messages of a step passed.
struct MessageTimes {
  std::optional<TimePoint> sent;  // its last update; nothing: the step sent none
  std::optional<TimePoint> mean;  // arrival of the last mean that it merged
  std::optional<RoundId> round;   // of that mean
};

class TimedExchange final : public Exchange {
 public:
  // Both outlive it.
  TimedExchange(Exchange& exchange, const Clock& clock) : exchange_(exchange), clock_(clock) {}

  void submit(Update update) override {
    times_.sent = clock_.now();
    exchange_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    const TimePoint begin = clock_.now();
    Result<Mean> mean = exchange_.collect(round, deadline);
    waited_ += clock_.now() - begin;
    if (mean.ok()) {
      times_.mean = mean->arrived;
      times_.round = mean->round;
    }
    return mean;
  }

  // Since the last call.
  [[nodiscard]] Seconds take_waited() { return std::exchange(waited_, Seconds{}); }
  [[nodiscard]] MessageTimes take_times() { return std::exchange(times_, MessageTimes{}); }

 private:
  Exchange& exchange_;
  const Clock& clock_;
  Seconds waited_{};
  MessageTimes times_;
};

}  // namespace longhaul
