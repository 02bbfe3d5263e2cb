#include "longhaul/hub/front_desk.h"

#include <gtest/gtest.h>

#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "tests/base/hand_errands.h"
#include "tests/hub/peer_fixture.h"

namespace longhaul {
namespace {

class FrontDeskTest : public ::testing::Test {
 protected:
  testing::HandStreamPtr open(StreamId id) {
    auto stream = std::make_shared<testing::HandStream>();
    desk.on_opened(id, stream);
    return stream;
  }
  static v1::Join right_join() {
    v1::Join join = testing::join_of("a");
    join.set_protocol(kProtocolVersion);
    join.set_wire(kWireVersion);
    return join;
  }

  testing::HandErrands errands;
  TimePoint now = time_after(TimePoint{}, Seconds(100));
  HubLog log{Log(LogLevel::kOff)};
  Roster roster{{.id = 1}, {}, 1, {}};
  LinkBook links{false};
  FirstModel model{1, 100, errands};
  RunEnd end;
  FrontDesk desk{roster, links, model, log, now};
};

TEST_F(FrontDeskTest, AStreamLeavesTheDeskWhenItBelongsToAPeer) {
  const auto control = open(1);
  const auto slot = desk.place_for(1, right_join(), end, nullptr);
  ASSERT_TRUE(slot);
  ASSERT_TRUE(roster.enter("a", *slot).ok());
  desk.seat(1, right_join(), *slot, Lanes({.most_bytes = 100, .most_transfers = 1}), nullptr);
  EXPECT_FALSE(desk.is_new(1));
  const auto welcome = control->take(Frame::kWelcome);
  ASSERT_TRUE(welcome);
  const auto lane_stream = open(2);
  v1::OpenLane lane;
  lane.set_session(welcome->welcome().session());
  EXPECT_EQ(desk.seat_lane(2, lane), roster.peer_of("a"));
  EXPECT_TRUE(roster.peer_of("a")->is_connected());
}

TEST_F(FrontDeskTest, SaysWhyItRefusesAndCounts) {
  const auto stream = open(1);
  v1::Join join = right_join();
  join.set_wire(kWireVersion + 1);
  EXPECT_FALSE(desk.place_for(1, join, end, nullptr));
  const auto refused = stream->take(Frame::kRefused);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->refused().is_final());
  EXPECT_EQ(desk.refused(), 1U);
}

TEST_F(FrontDeskTest, LetsNobodyJoinOnceItIsClosed) {
  desk.close({ErrorCode::kIo, "the disk is full"});
  const auto stream = open(1);
  EXPECT_FALSE(desk.place_for(1, right_join(), end, nullptr));
  const auto refused = stream->take(Frame::kRefused);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refused().why(), "the disk is full");
  EXPECT_FALSE(refused->refused().is_final());
}

TEST_F(FrontDeskTest, TakesOnlyThoseWhoAreInvited) {
  desk.admit_by([](const std::string& name, const std::string&, const std::string&) -> Status {
    if (name == "a") return Done{};
    return Error{ErrorCode::kMismatch, "not invited"};
  });
  (void)open(1);
  EXPECT_TRUE(desk.admits(1, kProtocolVersion, "a", ""));
  EXPECT_FALSE(desk.admits(1, kProtocolVersion, "b", ""));
  EXPECT_FALSE(desk.admits(1, kProtocolVersion + 1, "a", ""));
}

TEST_F(FrontDeskTest, EndsStreamsThatSayNothing) {
  (void)open(1);
  now = time_after(now, Seconds(4));
  (void)open(2);
  now = time_after(now, Seconds(2));
  desk.end_silent(Seconds(5));
  EXPECT_FALSE(desk.is_new(1));
  EXPECT_TRUE(desk.is_new(2));
}

}  // namespace
}  // namespace longhaul
