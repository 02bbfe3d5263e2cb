// An exchange that notes when updates were sent, when means arrived, and how long one waited.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/exchange/exchange.h"

namespace longhaul {

// A round whose mean was merged, as its replica saw it.
struct MergedRound {
  RoundId round;
  std::optional<TimePoint> sent{};     // nothing: this replica sent none, or before it resumed
  std::optional<TimePoint> arrived{};  // the mean; nothing: not known
  TimePoint merged{};
  Seconds waited{};  // for it, until then
};

class TimedExchange final : public Exchange {
 public:
  // Both outlive it.
  TimedExchange(Exchange& exchange, const Clock& clock) : exchange_(exchange), clock_(clock) {}

  void submit(Update update) override {
    sent_ = clock_.now();
    on_the_way_[update.round] = *sent_;
    exchange_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    const TimePoint begin = clock_.now();
    Result<Mean> mean = exchange_.collect(round, deadline);
    const TimePoint end = clock_.now();
    waited_ += end - begin;
    waited_for_next_ += end - begin;
    if (mean.ok()) note_merged({.round = round, .arrived = mean->arrived, .merged = end});
    return mean;
  }
  [[nodiscard]] bool averages_in_place() const override { return exchange_.averages_in_place(); }

  // Each since its last call.
  [[nodiscard]] Seconds take_waited() { return std::exchange(waited_, Seconds{}); }
  // The time of the last update; nothing: none was sent.
  [[nodiscard]] std::optional<TimePoint> take_sent() { return std::exchange(sent_, std::nullopt); }
  // The rounds whose means were merged, in that order.
  [[nodiscard]] std::vector<MergedRound> take_merged() { return std::exchange(merged_, {}); }

 private:
  void note_merged(MergedRound one) {
    if (const auto found = on_the_way_.find(one.round); found != on_the_way_.end())
      one.sent = found->second;
    // Rounds of a part are merged in their order: what is left of it is lost.
    std::erase_if(on_the_way_, [&](const auto& update) {
      return update.first.part == one.round.part && update.first.step <= one.round.step;
    });
    one.waited = std::exchange(waited_for_next_, Seconds{});
    merged_.push_back(one);
  }

  Exchange& exchange_;
  const Clock& clock_;
  Seconds waited_{};
  Seconds waited_for_next_{};  // for the mean that comes next
  std::optional<TimePoint> sent_;
  std::map<RoundId, TimePoint> on_the_way_;  // updates, by the time they were sent
  std::vector<MergedRound> merged_;
};

}  // namespace longhaul
