#include "longhaul/rehearsal/round_audit.h"

#include <gtest/gtest.h>

#include <vector>

namespace longhaul {
namespace {

using Json = nlohmann::ordered_json;

Json round_of(std::uint64_t step, const std::vector<std::size_t>& slots, std::size_t members) {
  Json contributors = Json::array();
  for (const std::size_t slot : slots) contributors.push_back({{"slot", slot}, {"digest", "01"}});
  return {{"step", step},
          {"part", 0},
          {"from", step},
          {"next", step + 1},
          {"next_part", 0},
          {"members", members},
          {"contributors", contributors}};
}

Json round_of_a_period(std::uint64_t step, std::uint64_t from) {
  Json round = round_of(step, {0}, 1);
  round["from"] = from;
  round["next"] = step + 4;
  return round;
}

Json status_of(std::uint64_t mismatches) { return {{"mismatches", mismatches}}; }

TEST(RoundAudit, IsContentWithRoundsInOrderOverTwoHubs) {
  RoundAudit audit;
  audit.on_round(round_of(0, {0, 1}, 2));
  audit.on_round(round_of(1, {0}, 2));
  audit.on_status(status_of(0));
  audit.on_new_hub();  // which could not tell of round 2
  audit.on_round(round_of(3, {0, 1}, 2));
  audit.on_status(status_of(0));
  EXPECT_TRUE(audit.verdict(4).ok());
  EXPECT_EQ(audit.contributions(), 5U);
}

TEST(RoundAudit, NoticesWhatCannotBe) {
  const auto verdict_of = [](const std::vector<Json>& rounds, std::size_t all) {
    RoundAudit audit;
    for (const Json& round : rounds) audit.on_round(round);
    return audit.verdict(all).ok();
  };
  const Json first = round_of(0, {0, 1}, 2);
  EXPECT_TRUE(verdict_of({first, round_of(1, {1}, 1)}, 2));
  EXPECT_FALSE(verdict_of({first, first}, 1));                      // closed twice
  EXPECT_FALSE(verdict_of({first, round_of(2, {1}, 1)}, 3));        // one is missing
  EXPECT_FALSE(verdict_of({first, round_of(1, {1, 1}, 2)}, 2));     // a replica is in it twice
  EXPECT_FALSE(verdict_of({first, round_of(1, {0, 1, 2}, 2)}, 2));  // more than were members
  EXPECT_FALSE(verdict_of({first}, 2));                             // the last is missing
}

TEST(RoundAudit, KnowsThatStepsMayHaveNoRound) {
  const auto verdict_of = [](const std::vector<Json>& rounds, std::size_t steps) {
    RoundAudit audit;
    for (const Json& round : rounds) audit.on_round(round);
    return audit.verdict(steps).ok();
  };
  const std::vector<Json> rounds{round_of_a_period(3, 0), round_of_a_period(7, 4)};
  EXPECT_TRUE(verdict_of(rounds, 8));
  EXPECT_TRUE(verdict_of(rounds, 11));
  EXPECT_FALSE(verdict_of(rounds, 12)) << "the round of step 11";
  EXPECT_FALSE(verdict_of({rounds[0], round_of_a_period(11, 8)}, 12)) << "that of step 7";
  EXPECT_FALSE(verdict_of({rounds[1]}, 8)) << "that of step 3";
}

// The rounds of one step, each followed by the next part or by the next step.
TEST(RoundAudit, KnowsThatAStepMayHaveARoundOfEachPart) {
  const auto verdict_of = [](const std::vector<std::uint32_t>& parts) {
    RoundAudit audit;
    for (const std::uint32_t part : parts) {
      Json round = round_of(0, {0}, 1);
      round["part"] = part;
      if (part < 2) round["next"] = 0;
      if (part < 2) round["next_part"] = part + 1;
      audit.on_round(round);
    }
    return audit.verdict(1).ok();
  };
  EXPECT_TRUE(verdict_of({0, 1, 2}));
  EXPECT_FALSE(verdict_of({0, 1, 1, 2})) << "twice";
  EXPECT_FALSE(verdict_of({0, 2})) << "one is missing";
  EXPECT_FALSE(verdict_of({0, 1})) << "the last is missing";
  EXPECT_FALSE(verdict_of({0, 2, 1})) << "not in order";
}

TEST(RoundAudit, NoticesAModelThatDiffered) {
  RoundAudit audit;
  audit.on_round(round_of(0, {0}, 1));
  audit.on_status(status_of(1));
  audit.on_new_hub();
  audit.on_status(status_of(0));
  EXPECT_FALSE(audit.verdict(1).ok());
}

}  // namespace
}  // namespace longhaul
