#include "longhaul/hub/hub_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace longhaul {
namespace {

using ::testing::ElementsAre;

// The kinds of events that wait, in order.
std::vector<std::string> kinds_in(Lines& lines) {
  std::vector<std::string> kinds;
  while (const std::optional<std::string> line = lines.pop_until(Deadline::min()))
    kinds.push_back(nlohmann::json::parse(*line).at("event"));
  return kinds;
}

class Watching : public ::testing::Test {
 protected:
  std::vector<std::string> told(const RoundNews& news) {
    watcher_(news);
    return kinds_in(*lines_);
  }

 protected:
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>(kMostLines);
  HubWatcher watcher_{lines_, true, Log(LogLevel::kOff)};
};

TEST_F(Watching, TellsOfTheFirstPlanWhichNoRoundBrought) {
  EXPECT_THAT(told({.outcome = {.decision = Decision{}}, .is_start = true}), ElementsAre("plan"));
}

TEST_F(Watching, TellsOfARoundAndOfThePlanThatCameWithIt) {
  EXPECT_THAT(told({.outcome = {.round = {.id = {.step = 7}, .from = {.step = 7}},
                                .members = 2,
                                .standing = {.next_to_close = {.step = 8}}}}),
              ElementsAre("round"));
  EXPECT_THAT(told({.outcome = {.round = {.id = {.step = 8}, .from = {.step = 8}},
                                .members = 2,
                                .decision = Decision{},
                                .standing = {.next_to_close = {.step = 9}}}}),
              ElementsAre("plan", "round"));
}

TEST_F(Watching, NamesStepAndPartOfARound) {
  const auto told_of = [&](const RoundOutcome& outcome) {
    watcher_({.outcome = outcome});
    const auto event = nlohmann::json::parse(lines_->pop_until(Deadline::min()).value());
    return std::vector<int>{event.at("step"), event.at("part"), event.at("from"), event.at("next"),
                            event.at("next_part")};
  };
  EXPECT_THAT(told_of({.round = {.id = {.step = 7, .part = 0}, .from = {.step = 4, .part = 1}},
                       .standing = {.next_to_close = {.step = 7, .part = 2}}}),
              ElementsAre(7, 0, 5, 7, 2));
  EXPECT_THAT(told_of({.round = {.id = {.step = 7, .part = 2}, .from = {.step = 7, .part = 1}},
                       .standing = {.next_to_close = {.step = 9, .part = 0}}}),
              ElementsAre(7, 2, 7, 9, 0));
}

TEST_F(Watching, LeavesRoundsOutUnlessAskedForThem) {
  HubWatcher quiet(lines_, false, Log(LogLevel::kOff));
  quiet({.outcome = {.round = {.id = {.step = 8}, .from = {.step = 8}},
                     .members = 2,
                     .decision = Decision{},
                     .standing = {.next_to_close = {.step = 9}}}});
  EXPECT_THAT(kinds_in(*lines_), ElementsAre("plan"));
}

TEST_F(Watching, WritesDigestsAsText) {
  RoundNews news{.outcome = {.round = {.id = {.step = 7}, .from = {.step = 7}},
                             .members = 1,
                             .standing = {.next_to_close = {.step = 8}}}};
  news.outcome.round.contributors = {{.slot = 2, .digest = 0xABC}};
  HubWatcher watcher(lines_, true, Log(LogLevel::kOff));
  watcher(news);
  const auto event = nlohmann::json::parse(lines_->pop_until(Deadline::min()).value());
  EXPECT_EQ(event.at("contributors").at(0).at("digest"), "0000000000000abc");
}

TEST(HubWatcher, TellsWhenTheUpdatesOfARoundHadArrived) {
  const auto lines = std::make_shared<Lines>(kMostLines);
  HubWatcher watcher(lines, true, Log(LogLevel::kOff));
  const TimePoint start = time_after(TimePoint{}, Seconds(100));
  watcher({.outcome = {.decision = Decision{}}, .time = start, .is_start = true});
  watcher({.outcome = {.round = {.contributors = {{.slot = 3}}},
                       .arrivals = {time_after(start, Seconds(0.5))}},
           .time = time_after(start, Seconds(0.75))});
  (void)lines->pop_until(Deadline::min());  // the plan
  const auto round = nlohmann::json::parse(lines->pop_until(Deadline::min()).value());
  EXPECT_DOUBLE_EQ(round.at("contributors").at(0).at("arrived_s"), 0.5);
  EXPECT_DOUBLE_EQ(round.at("time_s"), 0.75);
  EXPECT_DOUBLE_EQ(round.at("monotonic_s"), 100.75);
}

TEST_F(Watching, TellsOfARoundThatNobodyWasIn) {
  EXPECT_THAT(told({.outcome = {.round = {.id = {.step = 7}, .from = {.step = 7}},
                                .decision = Decision{},
                                .standing = {.next_to_close = {.step = 8}}}}),
              ElementsAre("plan", "round"));
}

}  // namespace
}  // namespace longhaul
