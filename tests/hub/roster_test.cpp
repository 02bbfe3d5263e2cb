#include "longhaul/hub/roster.h"

#include <gtest/gtest.h>

#include "tests/hub/peer_fixture.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::add_peer;
using testing::join_of;

Roster roster_of(std::size_t slots) { return Roster({.id = 7}, {}, slots, {2.0F}); }

TEST(Roster, GivesEachNameTheLowestSlotThatIsFree) {
  Roster roster = roster_of(2);
  EXPECT_EQ(add_peer(roster, "a", 1).slot(), 0U);
  EXPECT_EQ(add_peer(roster, "b", 2).slot(), 1U);
  EXPECT_EQ(roster.slot_for(join_of("c")).error().message,
            "the scenario has 2 replicas, and all are taken");
}

TEST(Roster, ANameKeepsItsSlotWhileItIsAway) {
  Roster roster = roster_of(2);
  roster.remove(add_peer(roster, "a", 1));
  EXPECT_EQ(roster.slot_for(join_of("b")).value(), 1U);
  EXPECT_EQ(roster.slot_for(join_of("a")).value(), 0U);
  EXPECT_EQ(roster.peer_of("a"), nullptr);
}

TEST(Roster, ForgetsOnlyThoseWhoAreAway) {
  Roster roster = roster_of(3);
  roster.remove(add_peer(roster, "a", 1));
  add_peer(roster, "b", 2);
  EXPECT_EQ(roster.forget_absent(), std::vector<std::string>{"a"});
  EXPECT_EQ(roster.run().slots, (std::map<std::string, std::uint64_t>{{"b", 1}}));
  EXPECT_EQ(roster.slot_for(join_of("c")).value(), 0U);
}

TEST(Roster, TakesWeightsBySlotAndOneWhereNoneIsGiven) {
  Roster roster = roster_of(2);
  EXPECT_EQ(roster.of(add_peer(roster, "a", 1)).weight, 2.0F);
  EXPECT_EQ(roster.of(add_peer(roster, "b", 2)).weight, 1.0F);
}

TEST(Roster, FindsAPeerByItsControlStreamAndByItsLanes) {
  Roster roster = roster_of(1);
  Peer& peer = add_peer(roster, "a", 1);
  EXPECT_EQ(roster.peer_on(1), &peer);
  EXPECT_EQ(roster.peer_on(101), &peer);
  EXPECT_TRUE(roster.of(peer).is_connected);
  roster.remove(peer);
  EXPECT_EQ(roster.peer_on(1), nullptr);
  EXPECT_EQ(roster.peer_on(101), nullptr);
  EXPECT_FALSE(roster.replicas().at("a").is_connected);
}

TEST(Roster, CountsEachChangeOfMembers) {
  Roster roster = roster_of(1);
  Peer& peer = add_peer(roster, "a", 1);
  const std::uint64_t before = roster.changes();
  roster.enroll(peer);
  EXPECT_TRUE(roster.replicas().at("a").is_enrolled);
  EXPECT_GT(roster.changes(), before);
  roster.remove(peer);
  EXPECT_FALSE(roster.replicas().at("a").is_enrolled);
}

TEST(Roster, WaitsForTheAbsentAsLongAsPatienceLasts) {
  Roster roster = roster_of(1);
  Peer& peer = add_peer(roster, "a", 1);
  roster.remove(peer);
  const TimePoint gone = time_after(TimePoint{}, Seconds(100));
  roster.note_absent(gone);
  EXPECT_TRUE(roster.awaits_absent(time_after(gone, Seconds(30)), Seconds(30)));
  EXPECT_FALSE(roster.awaits_absent(time_after(gone, Seconds(31)), Seconds(30)));
  roster.of(peer).has_left = true;
  EXPECT_FALSE(roster.awaits_absent(gone, Seconds(30)));
}

TEST(Roster, KeepsNewNamesInItsDirectory) {
  const std::filesystem::path directory = testing::test_directory();
  Roster roster({.id = 7}, directory, 2, {});
  add_peer(roster, "a", 1);
  const auto kept = Journal::read_run(directory);
  ASSERT_TRUE(kept.ok() && *kept);
  EXPECT_EQ((*kept)->slots, (std::map<std::string, std::uint64_t>{{"a", 0}}));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace longhaul
