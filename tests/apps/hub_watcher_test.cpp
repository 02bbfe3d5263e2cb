#include "apps/longhaul/hub_watcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace longhaul::apps {
namespace {

using ::testing::ElementsAre;

class Watching : public ::testing::Test {
 protected:
  // The kinds of events that are told, in order.
  std::vector<std::string> told(const RoundNews& news) {
    watcher_(news);
    std::vector<std::string> kinds;
    while (const std::optional<std::string> line = lines_->pop_until(Deadline::min()))
      kinds.push_back(nlohmann::json::parse(*line).at("event"));
    return kinds;
  }

 private:
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>(kMostLines);
  HubWatcher watcher_{lines_, Log(LogLevel::kOff)};
};

TEST_F(Watching, TellsOfTheFirstPlanWhichNoRoundBrought) {
  EXPECT_THAT(told({.outcome = {.decision = Decision{}}, .is_start = true}), ElementsAre("plan"));
}

TEST_F(Watching, TellsOfARoundAndOfThePlanThatCameWithIt) {
  EXPECT_THAT(told({.outcome = {.step = 7, .from = 7, .next = 8, .members = 2}}),
              ElementsAre("round"));
  EXPECT_THAT(
      told({.outcome = {.step = 8, .from = 8, .next = 9, .members = 2, .decision = Decision{}}}),
      ElementsAre("plan", "round"));
}

TEST_F(Watching, TellsOfARoundThatNobodyWasIn) {
  EXPECT_THAT(told({.outcome = {.step = 7, .from = 7, .next = 8, .decision = Decision{}}}),
              ElementsAre("plan", "round"));
}

}  // namespace
}  // namespace longhaul::apps
