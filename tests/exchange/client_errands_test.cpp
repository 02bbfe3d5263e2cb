// A replica's client answers while what the hub has sent is being checked.
#include <gtest/gtest.h>

#include "tests/exchange/client_desk.h"

namespace longhaul {
namespace {

class BusyClientTest : public testing::ClientCoreTest {
 protected:
  void SetUp() override {
    ClientCoreTest::SetUp();
    enroll(0);
    errands_.is_held = true;
  }
  void end_errand() { core_.on_errand(errands_.next(), now_); }
};

TEST_F(BusyClientTest, MeansAreCheckedBesideTheLoop) {
  closed(0);
  mean(0, 2);
  closed(1);
  mean(1, 3);
  EXPECT_EQ(errands_.waiting.size(), 2U);
  EXPECT_TRUE(news_.means.empty());
  end_errand();
  end_errand();
  EXPECT_EQ(news_.means, (testing::Means{{0, 2.0F}, {1, 3.0F}}));
}

TEST_F(BusyClientTest, AMeanOfAnEarlierConnectionComesToNothing) {
  closed(0);
  mean(0, 2);
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{}) << "it is not there yet";
  end_errand();
  EXPECT_TRUE(news_.means.empty());
  enroll(0);
  closed(0);
  mean(0, 2);
  end_errand();
  EXPECT_EQ(news_.means, (testing::Means{{0, 2.0F}}));
}

TEST_F(BusyClientTest, MeansWaitForTheSnapshotBeforeThem) {
  restart(3, 5);
  snapshot(1);
  closed(3);
  mean(3, 4, 1);
  ASSERT_EQ(errands_.waiting.size(), 1U);
  EXPECT_EQ(news_.restarts, 0);
  end_errand();
  EXPECT_EQ(news_.restarts, 1);
  end_errand();
  EXPECT_EQ(news_.means, (testing::Means{{3, 4.0F}}));
}

TEST_F(BusyClientTest, ASnapshotThatIsOvertakenByAnotherIsLeftAlone) {
  restart(3, 5);
  snapshot(1);
  restart(4, 6);
  end_errand();
  EXPECT_EQ(news_.restarts, 0);
  snapshot(2);
  end_errand();
  EXPECT_EQ(news_.restarts, 1);
}

TEST_F(BusyClientTest, AHubIsHeldBackWhileItsMeansWait) {
  const int before = stream(lane_).reads;
  for (std::uint64_t step = 0; step < 4; ++step) {
    closed(step);
    mean(step, 1);
  }
  EXPECT_EQ(stream(lane_).reads, before + 4);
  core_.set_reading(true);
  closed(4);
  mean(4, 1);
  EXPECT_EQ(stream(lane_).reads, before + 4) << "what comes next stays with the hub";
  end_errand();
  end_errand();
  EXPECT_EQ(stream(lane_).reads, before + 5);
}

}  // namespace
}  // namespace longhaul
