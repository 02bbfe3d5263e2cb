#include "longhaul/hub/run_end.h"

#include <gtest/gtest.h>

#include "tests/hub/peer_fixture.h"

namespace longhaul {
namespace {

TEST(RunEnd, IsPastWhenTheRoundsOfTheLastStepHaveClosed) {
  RunEnd end;
  EXPECT_FALSE(end.is_past({.step = 100}));
  end.expect(10, v1::CAUSE_STEPS);
  EXPECT_FALSE(end.is_past({.step = 9, .part = 1}));
  EXPECT_TRUE(end.is_past({.step = 10}));
}

TEST(RunEnd, MovesToAnEarlierStep) {
  RunEnd end;
  end.expect(10, v1::CAUSE_STEPS);
  EXPECT_FALSE(end.is_due(4));
  end.set(4, v1::CAUSE_TARGET);
  EXPECT_TRUE(end.is_due(4));
  EXPECT_EQ(end.cause(), v1::CAUSE_TARGET);
}

TEST(RunEnd, TheFirstCauseThatWaitsCounts) {
  RunEnd end;
  end.postpone(v1::CAUSE_TARGET);
  end.postpone(v1::CAUSE_STOPPED);
  EXPECT_EQ(end.take_postponed(), v1::CAUSE_TARGET);
  EXPECT_EQ(end.take_postponed(), std::nullopt);
}

TEST(RunEnd, ATargetIsNobodysWishToStop) {
  RunEnd end;
  end.ask(v1::CAUSE_TARGET);
  EXPECT_FALSE(end.is_asked());
  end.ask(v1::CAUSE_STOPPED);
  EXPECT_TRUE(end.is_asked());
  EXPECT_TRUE(end.is_stopping());
}

TEST(RunEnd, TellsAPeerOnlyWhatIsKnown) {
  Roster roster({.id = 1}, {}, 1, {});
  const auto stream = std::make_shared<testing::HandStream>();
  Peer& peer = testing::add_peer(roster, "a", 1, stream);
  RunEnd end;
  end.tell(peer);
  EXPECT_TRUE(stream->written.empty());
  end.expect(3, v1::CAUSE_STEPS);
  end.tell(peer);
  ASSERT_EQ(stream->written.size(), 1U);
  EXPECT_EQ(stream->written[0].finish().last_step(), 2U);
}

}  // namespace
}  // namespace longhaul
