// How a stream becomes a member: who is refused, which slot it gets, its lanes, the start.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;
using testing::join_frame;

TEST(HubJoins, RefusesWhoSpeaksAnotherProtocolForGood) {
  HubDesk desk;
  Frame frame = join_frame("a");
  frame.mutable_join()->set_protocol(kProtocolVersion + 1);
  const auto refused = desk.refusal(frame);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
  EXPECT_EQ(desk.core.status().refused, 1U);
}

TEST(HubJoins, RefusesAnotherModelAndOtherFirstParameters) {
  HubDesk desk;
  (void)desk.join(join_frame("a"));
  Frame larger = join_frame("b");
  larger.mutable_join()->set_elements(5);
  Frame other = join_frame("b");
  *other.mutable_join()->mutable_layers() = to_message(LayerTable{{.name = "all", .count = 4}});
  Frame elsewhere = join_frame("b");
  elsewhere.mutable_join()->set_initial(1);
  for (const Frame& frame : {larger, other, elsewhere}) {
    const auto refused = desk.refusal(frame);
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->is_final());
  }
}

TEST(HubJoins, RefusesToGoOnWithARunThatItDoesNotKnow) {
  HubDesk desk;
  Frame frame = join_frame("a");
  frame.mutable_join()->set_is_fresh(false);
  frame.mutable_join()->mutable_next_round()->set_step(7);
  const auto refused = desk.refusal(frame);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
}

// Its own old connection, after a crash, is silent and goes soon. One that is heard of is another.
TEST(HubJoins, ANameThatIsTakenIsRefusedForGoodIfItsOwnerLives) {
  HubDesk desk;
  const HubDesk::Joined first = desk.join(join_frame("a"));
  desk.advance(Seconds(2));
  EXPECT_FALSE(desk.refusal(join_frame("a"))->is_final());
  desk.advance(Seconds(2));
  EXPECT_FALSE(desk.refusal(join_frame("a"))->is_final()) << "nothing was heard of the first one";
  Frame ping;
  ping.mutable_ping()->set_id(1);
  desk.hear(first.control, ping);
  const auto refused = desk.refusal(join_frame("a"));
  EXPECT_TRUE(refused->is_final());
  EXPECT_NE(refused->why().find("a name of its own"), std::string::npos);
}

TEST(HubJoins, RefusesFieldsOutOfRange) {
  HubOptions options = desk_options();
  options.most_elements = 1000;
  HubDesk desk(std::move(options));
  std::vector<Frame> frames(6, join_frame("a"));
  frames[0].mutable_join()->set_name("../a");
  frames[1].mutable_join()->set_lanes(0);
  frames[2].mutable_join()->set_lanes(1000);
  frames[3].mutable_join()->set_elements(0);
  frames[4].mutable_join()->set_elements(1001);
  frames[5].mutable_join()->set_name("");
  for (const Frame& frame : frames) EXPECT_TRUE(desk.refusal(frame));
  EXPECT_EQ(desk.core.status().refused, frames.size());
}

TEST(HubJoins, WhoAsksUnderNoNameIsRefused) {
  HubDesk desk;
  Frame frame;
  frame.mutable_ask()->set_protocol(kProtocolVersion);
  frame.mutable_ask()->set_name("a\nb");
  EXPECT_TRUE(desk.refusal(frame));
  frame.mutable_ask()->set_name("a");
  frame.mutable_ask()->set_protocol(kProtocolVersion + 1);
  const auto refused = desk.refusal(frame);
  ASSERT_TRUE(refused);  // and both sides are named
  EXPECT_NE(refused->why().find("protocol " + std::to_string(kProtocolVersion) + ","),
            std::string::npos);
  EXPECT_NE(refused->why().find("protocol " + std::to_string(kProtocolVersion + 1)),
            std::string::npos);
}

TEST(HubJoins, AnAdmissionThatCannotBeCheckedNowMayWorkLater) {
  HubOptions options = desk_options();
  ErrorCode code = ErrorCode::kIo;
  options.admit = [&](const std::string&, const std::string&, const std::string&) -> Status {
    return Error{code, "no list of members"};
  };
  HubDesk desk(std::move(options));
  EXPECT_FALSE(desk.refusal(join_frame("a"))->is_final());
  code = ErrorCode::kMismatch;
  EXPECT_TRUE(desk.refusal(join_frame("a"))->is_final());
}

TEST(HubJoins, RefusesLayersThatAreNotTheModel) {
  HubDesk desk(desk_options("olco3-vq"));
  Frame frame = join_frame("a");
  for (const LayerTable& wrong :
       {LayerTable{{.name = "a", .count = 3}},
        LayerTable{{.name = "a", .count = 3}, {.name = "b", .offset = 2, .count = 2}}}) {
    *frame.mutable_join()->mutable_layers() = to_message(wrong);
    EXPECT_TRUE(desk.refusal(frame));
  }
  HubDesk streaming(desk_options("streaming-diloco"));
  frame = join_frame("a");
  frame.mutable_join()->set_elements(2);
  EXPECT_TRUE(streaming.refusal(frame)) << "three fragments";
}

TEST(HubJoins, WhoHasNotSaidWhoTheyAreAreNotTooMany) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  std::vector<HubDesk::Peer> peers;
  peers.reserve(600);
  for (int i = 0; i < 600; ++i) peers.push_back(desk.open());
  EXPECT_TRUE(peers.back().is_gone());
  EXPECT_EQ(desk.core.status().refused, 600U - 512U);
  EXPECT_FALSE(a.control.is_gone());
  Frame ping;
  ping.mutable_ping();
  for (int i = 0; i < 3; ++i) {  // the silent ones go, who is heard of stays
    desk.hear(a.control, ping);
    desk.advance(Seconds(3));
  }
  EXPECT_FALSE(desk.open().is_gone());
}

TEST(HubJoins, ALaneOfNoSessionIsClosed) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  const HubDesk::Peer lane = desk.open();
  Frame frame;
  frame.mutable_open_lane()->set_session(a.welcome.session() + 1);
  desk.hear(lane, frame);
  EXPECT_TRUE(lane.is_gone());
  EXPECT_FALSE(a.lane.is_gone());
}

TEST(HubJoins, LanesMayComeLaterUpToALimit) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  Frame frame;
  frame.mutable_open_lane()->set_session(all[0].welcome.session());
  std::vector<HubDesk::Peer> lanes;
  for (int i = 0; i < 64; ++i) {
    lanes.push_back(desk.open());
    desk.hear(lanes.back(), frame);
  }
  for (int i = 0; i < 63; ++i) EXPECT_FALSE(lanes[static_cast<std::size_t>(i)].is_gone());
  EXPECT_TRUE(lanes[63].is_gone());
  HubDesk::Joined other = all[0];
  other.lane = lanes[5];
  desk.update(other, 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(3));
  EXPECT_EQ(desk.core.status().next_round, 1U);
}

TEST(HubJoins, WhoDoesNotSpeakTheProtocolIsClosed) {
  HubDesk desk;
  for (const bool has_chunk : {false, true}) {
    Frame frame;
    if (has_chunk) frame.mutable_chunk();
    const HubDesk::Peer peer = desk.open();
    desk.hear(peer, frame);
    EXPECT_TRUE(peer.is_gone());
  }
  EXPECT_EQ(desk.core.status().refused, 2U);
}

TEST(HubJoins, ALiveNameIsTakenUnlessItsOwnerComesAnew) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  Frame again = join_frame("a");
  const auto refused = desk.refusal(again);
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->is_final());  // it may be gone soon
  EXPECT_FALSE(a.control.is_gone());
  again.mutable_join()->set_session(a.welcome.session());
  const HubDesk::Joined anew = desk.join(again);
  EXPECT_TRUE(a.control.is_gone());
  EXPECT_TRUE(a.lane.is_gone());
  EXPECT_EQ(anew.welcome.slot(), a.welcome.slot());
}

TEST(HubJoins, SlotsAreGivenInOrderOrAsWantedAndNoMoreThanThereAre) {
  HubDesk desk(desk_options("d-sgd", 3));
  Frame wants = join_frame("a");
  wants.mutable_join()->set_slot(1);
  EXPECT_EQ(desk.join(wants).welcome.slot(), 1U);
  EXPECT_EQ(desk.join(join_frame("b")).welcome.slot(), 0U);
  Frame taken = join_frame("c");
  taken.mutable_join()->set_slot(1);
  EXPECT_TRUE(desk.refusal(taken));
  taken.mutable_join()->set_slot(3);
  EXPECT_TRUE(desk.refusal(taken));
  EXPECT_EQ(desk.join(join_frame("c")).welcome.slot(), 2U);
  EXPECT_TRUE(desk.refusal(join_frame("d")));
}

TEST(HubJoins, StartsWhenAllWhoMustBeThereAre) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  ASSERT_TRUE(a.control.stream->take(Frame::kSendState));
  desk.send_model(a);
  EXPECT_FALSE(desk.core.status().is_started);
  const HubDesk::Joined b = desk.join(join_frame("b"));
  EXPECT_TRUE(desk.core.status().is_started);
  EXPECT_TRUE(a.control.stream->take(Frame::kEnrolled));
  EXPECT_TRUE(b.control.stream->take(Frame::kEnrolled));
}

TEST(HubJoins, WhoGoesBeforeTheStartLeavesNothingBehind) {
  HubDesk desk;
  const HubDesk::Joined mistaken = desk.join(join_frame("mistaken"));
  desk.breaks(mistaken.control);
  desk.advance(Seconds(0.1));
  Frame other = join_frame("replica-0");
  *other.mutable_join()->mutable_layers() = to_message(LayerTable{{.name = "all", .count = 4}});
  EXPECT_EQ(desk.join(other).welcome.slot(), 0U);
}

TEST(HubJoins, AsksAnotherOneForTheModelIfTheFirstGoes) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  const HubDesk::Joined b = desk.join(join_frame("b"));
  ASSERT_TRUE(a.control.stream->take(Frame::kSendState));
  ASSERT_FALSE(b.control.stream->take(Frame::kSendState));
  desk.breaks(a.control);
  desk.advance(Seconds(0.1));
  EXPECT_TRUE(b.control.stream->take(Frame::kSendState));
}

TEST(HubJoins, AModelThatIsNotWhatItsSenderToldIsRejected) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  desk.send(a, {.cargo = Cargo::kSnapshot}, ByteBuffer(16, std::byte{0x11}));
  EXPECT_TRUE(a.control.is_gone());
  EXPECT_EQ(desk.core.status().rejected, 1U);
}

TEST(HubJoins, ANewcomerThatStaysSilentIsClosed) {
  HubDesk desk;
  const HubDesk::Peer peer = desk.open();
  desk.advance(Seconds(4));
  EXPECT_FALSE(peer.is_gone());
  desk.advance(Seconds(2));
  EXPECT_TRUE(peer.is_gone());
}

}  // namespace
}  // namespace longhaul
