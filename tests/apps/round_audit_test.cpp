#include "apps/longhaul/round_audit.h"

#include <gtest/gtest.h>

#include <vector>

namespace longhaul::apps {
namespace {

using Json = nlohmann::ordered_json;

Json round_of(std::uint64_t step, const std::vector<std::size_t>& slots, std::size_t members) {
  Json contributors = Json::array();
  for (const std::size_t slot : slots) contributors.push_back({{"slot", slot}, {"digest", 1}});
  return {{"step", step}, {"members", members}, {"contributors", contributors}};
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

TEST(RoundAudit, NoticesAModelThatDiffered) {
  RoundAudit audit;
  audit.on_round(round_of(0, {0}, 1));
  audit.on_status(status_of(1));
  audit.on_new_hub();
  audit.on_status(status_of(0));
  EXPECT_FALSE(audit.verdict(1).ok());
}

}  // namespace
}  // namespace longhaul::apps
