// A client that is given the hub's state: what waits for the snapshot, and what it replaces.
#include <gtest/gtest.h>

#include "tests/exchange/client_desk.h"

namespace longhaul {
namespace {

using testing::checked;
using testing::Means;
using testing::payload_with;

using ClientSnapshots = testing::ClientCoreTest;

TEST_F(ClientSnapshots, NothingChangesUntilTheSnapshotIsHere) {
  enroll(0);
  core_.submit({.round = {.step = 0}, .payload = checked(payload_with(1))});
  restart(100, 102);
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{});
  EXPECT_EQ(news_.restarts, 0);
  EXPECT_EQ(core_.kept().size(), 1U);
}

TEST_F(ClientSnapshots, MeansWaitForTheSnapshotThatTheyFollow) {
  restart(100, 102);
  closed(100);
  mean(100, 5, 1);
  EXPECT_TRUE(news_.means.empty());
  snapshot(1);
  EXPECT_EQ(news_.restarts, 1);
  EXPECT_EQ(news_.means, (Means{{100, 5.0F}}));
}

TEST_F(ClientSnapshots, ASnapshotMayOvertakeItsAnnouncement) {
  mean(100, 5, 1);
  snapshot(1);
  EXPECT_EQ(news_.restarts, 0);
  restart(100, 102);
  EXPECT_EQ(news_.restarts, 1);
  closed(100);
  EXPECT_EQ(news_.means, (Means{{100, 5.0F}}));
}

TEST_F(ClientSnapshots, CargoOfAStateThatIsGoneIsNotTakenForTheNext) {
  enroll(0);
  closed(3);
  restart(3, 5);
  mean(3, 1, 0);  // announced before, and late
  snapshot(1);
  closed(3);
  EXPECT_TRUE(news_.means.empty());
  mean(3, 2, 1);
  EXPECT_EQ(news_.means, (Means{{3, 2.0F}}));
}

TEST_F(ClientSnapshots, OfTwoSnapshotsTheLastOneCounts) {
  restart(3, 5);
  restart(8, 10);
  snapshot(1);
  EXPECT_EQ(news_.restarts, 0);
  snapshot(2);
  EXPECT_EQ(news_.restarts, 1);
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{.step = 8});
  EXPECT_EQ(join_.first_step(), 10U);
  EXPECT_FALSE(join_.is_fresh());
}

TEST_F(ClientSnapshots, WhatWasSubmittedBeforeASnapshotIsForgotten) {
  enroll(0);
  for (std::uint64_t step = 0; step < 6; ++step)
    core_.submit({.round = {.step = step}, .payload = checked(payload_with(1))});
  (void)sent();
  restart(3, 5);
  snapshot(1);
  enroll(5);
  EXPECT_TRUE(sent().empty());
}

}  // namespace
}  // namespace longhaul
