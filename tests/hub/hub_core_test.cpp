// The hub's state machine: what it refuses, what it counts, whom it waits for.
#include "longhaul/hub/hub_core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_setup;
using testing::HubDesk;
using testing::join_frame;
using testing::slots_in;

TEST(HubCore, RefusesWhoSpeaksAnotherProtocolForGood) {
  HubDesk desk;
  Frame frame = join_frame("a");
  frame.mutable_join()->set_protocol(kProtocolVersion + 1);
  const auto refused = desk.refusal(frame);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
  EXPECT_EQ(desk.core.status().refused, 1U);
}

TEST(HubCore, RefusesAnotherModelAndOtherFirstParameters) {
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

TEST(HubCore, RefusesToGoOnWithARunThatItDoesNotKnow) {
  HubDesk desk;
  Frame frame = join_frame("a");
  frame.mutable_join()->set_is_fresh(false);
  frame.mutable_join()->set_next_round(7);
  const auto refused = desk.refusal(frame);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
}

TEST(HubCore, RefusesFieldsOutOfRange) {
  HubSetup setup = desk_setup();
  setup.most_elements = 1000;
  HubDesk desk(std::move(setup));
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

TEST(HubCore, WhoAsksUnderNoNameIsRefused) {
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

TEST(HubCore, AnAdmissionThatCannotBeCheckedNowMayWorkLater) {
  HubSetup setup = desk_setup();
  ErrorCode code = ErrorCode::kIo;
  setup.admit = [&](const std::string&, const std::string&, const std::string&) -> Status {
    return Error{code, "no list of members"};
  };
  HubDesk desk(std::move(setup));
  EXPECT_FALSE(desk.refusal(join_frame("a"))->is_final());
  code = ErrorCode::kMismatch;
  EXPECT_TRUE(desk.refusal(join_frame("a"))->is_final());
}

TEST(HubCore, WeightsAreTheScenariosBySlot) {
  HubSetup setup = desk_setup();
  setup.weights = {1, 3};
  HubDesk desk(std::move(setup));
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(5));
  ASSERT_EQ(desk.rounds.size(), 2U);
  const JournalRound* round = desk.core.training()->journal().first_from(0);
  ASSERT_NE(round, nullptr);
  std::vector<float> mean(testing::kDeskElements);
  add(PayloadView::parse(*round->mean, mean.size()).value(), 1.0F, mean);
  EXPECT_EQ(mean, std::vector<float>(testing::kDeskElements, 4.0F));
}

HubSetup desk_with_periods(int period, int delay) {
  HubSetup setup = desk_setup("local-sgd");
  setup.training.engine.recipe.plan.period_steps = period;
  setup.training.engine.recipe.plan.delay_steps = delay;
  return setup;
}

TEST(HubCore, ClosesARoundAtTheEndOfEachPeriod) {
  HubDesk desk(desk_with_periods(4, 0));
  const std::vector<HubDesk::Joined> all = desk.start();
  EXPECT_EQ(desk.core.status().next_round, 3U);
  for (const HubDesk::Joined& one : all) desk.update(one, 3, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 7U);
  EXPECT_EQ(desk.rounds.back().from, 0U);
  EXPECT_EQ(desk.rounds.back().next, 7U);
}

TEST(HubCore, RejectsAnUpdateOfAStepWithoutARound) {
  for (const std::uint64_t step :
       {4U, 5U, 11U}) {  // in the period, and beyond what anyone can reach
    HubDesk desk(desk_with_periods(4, 4));
    const std::vector<HubDesk::Joined> all = desk.start();
    desk.update(all[0], step, dense_payload(1));
    EXPECT_TRUE(all[0].control.is_gone()) << step;
    EXPECT_EQ(desk.core.status().rejected, 1U);
    EXPECT_FALSE(all[1].control.is_gone());
    desk.update(all[1], 3, dense_payload(1));
    EXPECT_EQ(desk.core.status().next_round, 7U);
  }
}

TEST(HubCore, RefusesLayersThatAreNotTheModel) {
  HubDesk desk(desk_setup("olco3-vq"));
  Frame frame = join_frame("a");
  for (const LayerTable& wrong :
       {LayerTable{{.name = "a", .count = 3}},
        LayerTable{{.name = "a", .count = 3}, {.name = "b", .offset = 2, .count = 2}}}) {
    *frame.mutable_join()->mutable_layers() = to_message(wrong);
    EXPECT_TRUE(desk.refusal(frame));
  }
  HubDesk streaming(desk_setup("streaming-diloco"));
  frame = join_frame("a");
  frame.mutable_join()->set_elements(2);
  EXPECT_TRUE(streaming.refusal(frame)) << "three fragments";
}

TEST(HubCore, WhoHasNotSaidWhoTheyAreAreNotTooMany) {
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

TEST(HubCore, ALaneOfNoSessionIsClosed) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  const HubDesk::Peer lane = desk.open();
  Frame frame;
  frame.mutable_open_lane()->set_session(a.welcome.session() + 1);
  desk.hear(lane, frame);
  EXPECT_TRUE(lane.is_gone());
  EXPECT_FALSE(a.lane.is_gone());
}

TEST(HubCore, LanesMayComeLaterUpToALimit) {
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

TEST(HubCore, APongTellsHowFastTheReplicasTransfersCome) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  const auto pong = [&] {
    Frame frame;
    frame.mutable_ping()->set_id(5);
    desk.hear(all[0].control, frame);
    return all[0].control.stream->take(Frame::kPong)->pong();
  };
  EXPECT_EQ(pong().up_bytes_per_s(), 0);
  OutgoingCargo cargo;
  cargo.add({.cargo = Cargo::kProbe}, std::make_shared<const ByteBuffer>(16 * 1024));
  while (!cargo.is_empty()) {
    desk.hear(all[0].lane, cargo.next_chunk());
    desk.advance(Seconds(0.1));
  }
  EXPECT_NEAR(pong().up_bytes_per_s(), 10 * 1024, 1);
}

TEST(HubCore, WhoDoesNotSpeakTheProtocolIsClosed) {
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

TEST(HubCore, CountsConnectionsThatEndedBeforeAnyoneSaidWhoTheyAre) {
  HubDesk desk;
  desk.core.on_strangers(3, "it showed no certificate", desk.now);
  desk.core.on_strangers(1, "it does not speak TLS", desk.now);
  EXPECT_EQ(desk.core.status().strangers, 4U);
  EXPECT_EQ(desk.core.status().refused, 0U);
}

TEST(HubCore, CountsWhatWasRejectedByWhoSentIt) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[1], 0, ByteBuffer(10, std::byte{1}));
  desk.update(all[1], 1, ByteBuffer(10, std::byte{1}));
  EXPECT_EQ(desk.core.status().rejected, 2U);
  EXPECT_EQ(desk.core.status().replicas.at("replica-0").rejected, 0U);
  EXPECT_EQ(desk.core.status().replicas.at("replica-1").rejected, 2U);
}

TEST(HubCore, ALiveNameIsTakenUnlessItsOwnerComesAnew) {
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

TEST(HubCore, SlotsAreGivenInOrderOrAsWantedAndNoMoreThanThereAre) {
  HubDesk desk(desk_setup("d-sgd", 3));
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

TEST(HubCore, StartsWhenAllWhoMustBeThereAre) {
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

TEST(HubCore, WhoGoesBeforeTheStartLeavesNothingBehind) {
  HubDesk desk;
  const HubDesk::Joined mistaken = desk.join(join_frame("mistaken"));
  desk.breaks(mistaken.control);
  desk.advance(Seconds(0.1));
  Frame other = join_frame("replica-0");
  *other.mutable_join()->mutable_layers() = to_message(LayerTable{{.name = "all", .count = 4}});
  EXPECT_EQ(desk.join(other).welcome.slot(), 0U);
}

TEST(HubCore, AsksAnotherOneForTheModelIfTheFirstGoes) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  const HubDesk::Joined b = desk.join(join_frame("b"));
  ASSERT_TRUE(a.control.stream->take(Frame::kSendState));
  ASSERT_FALSE(b.control.stream->take(Frame::kSendState));
  desk.breaks(a.control);
  desk.advance(Seconds(0.1));
  EXPECT_TRUE(b.control.stream->take(Frame::kSendState));
}

TEST(HubCore, AModelThatIsNotWhatItsSenderToldIsRejected) {
  HubDesk desk;
  const HubDesk::Joined a = desk.join(join_frame("a"));
  desk.send(a, {.cargo = Cargo::kSnapshot}, ByteBuffer(16, std::byte{0x11}));
  EXPECT_TRUE(a.control.is_gone());
  EXPECT_EQ(desk.core.status().rejected, 1U);
}

TEST(HubCore, ChunksOutOfRangeEndTheConnection) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  Frame frame;
  frame.mutable_chunk()->set_total(10);
  frame.mutable_chunk()->set_offset(8);
  frame.mutable_chunk()->set_data("123");
  desk.hear(all[0].lane, frame);
  EXPECT_TRUE(all[0].control.is_gone());
  EXPECT_FALSE(all[1].control.is_gone());
  EXPECT_EQ(desk.core.status().rejected, 1U);
}

TEST(HubCore, WhatIsNotAChunkEndsALane) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  Frame frame;
  frame.mutable_ping();
  desk.hear(all[0].lane, frame);
  EXPECT_TRUE(all[0].control.is_gone());
}

TEST(HubCore, AnUpdateFarAheadEndsTheConnection) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 1'000'000, dense_payload(1));
  EXPECT_TRUE(all[0].control.is_gone());
  EXPECT_EQ(desk.core.status().rejected, 1U);
}

TEST(HubCore, APayloadThatDoesNotParseIsRejectedAndTheRoundCloses) {
  ByteBuffer truncated = dense_payload(1);
  truncated.pop_back();
  ByteBuffer damaged = dense_payload(1);
  damaged.back() ^= std::byte{1};
  const ByteBuffer infinite = [] {
    ByteBuffer bytes = dense_payload(1);
    const float value = std::numeric_limits<float>::infinity();
    std::ranges::copy(std::as_bytes(std::span(&value, 1)), bytes.end() - 4);
    reseal_payload(bytes);
    return bytes;
  }();
  for (const ByteBuffer& bad : {truncated, damaged, infinite}) {
    HubDesk desk;
    const std::vector<HubDesk::Joined> all = desk.start();
    desk.update(all[0], 0, bad);
    EXPECT_EQ(desk.core.status().rejected, 1U);
    desk.update(all[1], 0, dense_payload(2));
    ASSERT_EQ(desk.rounds.size(), 2U);
    EXPECT_EQ(slots_in(desk.rounds[1]), std::vector<std::size_t>{1});
    const auto closed = all[0].control.stream->take(Frame::kClosed);
    ASSERT_TRUE(closed);
    EXPECT_FALSE(closed->closed().has_own());
    EXPECT_FALSE(all[0].control.is_gone());
  }
}

TEST(HubCore, ANewcomerThatStaysSilentIsClosed) {
  HubDesk desk;
  const HubDesk::Peer peer = desk.open();
  desk.advance(Seconds(4));
  EXPECT_FALSE(peer.is_gone());
  desk.advance(Seconds(2));
  EXPECT_TRUE(peer.is_gone());
}

TEST(HubCore, ASilentReplicaIsDroppedAndItsRoundsCloseWithoutIt) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.advance(Seconds(4));
  desk.update(all[1], 0, dense_payload(1));
  desk.advance(Seconds(2));
  EXPECT_TRUE(all[0].control.is_gone());
  EXPECT_FALSE(all[1].control.is_gone());
  ASSERT_EQ(desk.rounds.size(), 2U);
  EXPECT_EQ(slots_in(desk.rounds[1]), std::vector<std::size_t>{1});
}

TEST(HubCore, WhoHasAnotherSharedModelIsGivenTheHubs) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  v1::Report report;
  report.set_step(0);
  report.set_digest(digest_of(testing::desk_model()));
  desk.report(all[0], report);
  EXPECT_EQ(desk.core.status().mismatches, 0U);
  report.set_digest(1);
  desk.report(all[0], report);
  EXPECT_EQ(desk.core.status().mismatches, 1U);
  EXPECT_TRUE(all[0].control.stream->take(Frame::kRestart));
  EXPECT_TRUE(all[0].lane.stream->take(Frame::kChunk));
  desk.report(all[0], report);  // of the state that is gone
  EXPECT_EQ(desk.core.status().mismatches, 1U);
}

v1::Report loaded_report(std::uint64_t step, std::uint32_t restarts) {
  v1::Report report;
  report.set_step(step);
  report.set_restarts(restarts);
  return report;
}

// A replica that was killed and starts anew while its earlier updates are still in open rounds.
class HubCoreLives : public ::testing::Test {
 protected:
  void SetUp() override {
    all_ = desk_.start();
    for (std::uint64_t step = 0; step < 3; ++step) desk_.update(all_[0], step, dense_payload(1));
    desk_.update(all_[1], 0, dense_payload(2));
    desk_.breaks(all_[0].control);
    anew_ = desk_.join(join_frame("replica-0"));
    const auto restart = anew_.control.stream->take(Frame::kRestart);
    ASSERT_TRUE(restart);
    first_step_ = restart->restart().first_step();
    EXPECT_EQ(restart->restart().next_round(), 1U);
    EXPECT_EQ(first_step_, 3U);  // two steps of delay
  }
  HubDesk desk_{desk_setup("dd-sgd")};
  std::vector<HubDesk::Joined> all_;
  HubDesk::Joined anew_;
  std::uint64_t first_step_ = 0;
};

TEST_F(HubCoreLives, IsAMemberOnceItReportsTheStateThatItWasGiven) {
  desk_.report(anew_, loaded_report(first_step_, 0));  // of the state that is gone
  EXPECT_FALSE(anew_.control.stream->take(Frame::kEnrolled));
  desk_.report(anew_, loaded_report(first_step_, 1));
  const auto enrolled = anew_.control.stream->take(Frame::kEnrolled);
  ASSERT_TRUE(enrolled);
  EXPECT_EQ(enrolled->enrolled().from_step(), first_step_);
}

// With a checkpoint from before the hub's state replaced its own, it cannot do again what it did.
TEST_F(HubCoreLives, DoesNotGoOnFromBeforeItsStateWasReplaced) {
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.breaks(anew_.control);
  const auto untouched = desk_.join(desk_.rejoin_frame("replica-0"));
  EXPECT_FALSE(untouched.control.stream->take(Frame::kRestart)) << "nothing is in of that state";
  desk_.breaks(untouched.control);
  anew_ = desk_.join(join_frame("replica-0"));
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.update(anew_, first_step_, dense_payload(7), 1, {.since = first_step_});
  desk_.breaks(anew_.control);
  Frame frame = desk_.rejoin_frame("replica-0");
  frame.mutable_join()->set_step(first_step_ - 1);
  const auto back = desk_.join(frame);
  EXPECT_TRUE(back.control.stream->take(Frame::kRestart));
  desk_.breaks(back.control);
  frame.mutable_join()->set_step(first_step_);
  EXPECT_FALSE(desk_.join(frame).control.stream->take(Frame::kRestart));
}

TEST_F(HubCoreLives, UpdatesOfTheEarlierStateAreNotTaken) {
  desk_.report(anew_, loaded_report(first_step_, 1));
  desk_.update(anew_, first_step_, dense_payload(7), 0);
  for (std::uint64_t step = 1; step <= 3; ++step) desk_.update(all_[1], step, dense_payload(2));
  EXPECT_EQ(desk_.core.status().next_round, first_step_);
  desk_.update(anew_, first_step_, dense_payload(8), 1);
  EXPECT_EQ(desk_.core.status().next_round, first_step_ + 1);
}

TEST_F(HubCoreLives, WhatTheEarlierLifeSentIsInAndNotTakenForItsOwn) {
  for (std::uint64_t step = 1; step < 3; ++step) {
    desk_.update(all_[1], step, dense_payload(2));
    const auto closed = anew_.control.stream->take(Frame::kClosed);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->closed().step(), step);
    EXPECT_EQ(closed->closed().own(), digest_of(dense_payload(1)));
    EXPECT_EQ(closed->closed().way(), v1::WAY_UNION);  // it does not have that payload
    EXPECT_EQ(slots_in(desk_.rounds.back()), (std::vector<std::size_t>{0, 1}));
  }
}

TEST_F(HubCoreLives, AReplicaThatConnectsAnewTakesPartFromTheStepOfItsStateOn) {
  desk_.breaks(anew_.lane);
  Frame again = desk_.rejoin_frame("replica-0", 1);
  again.mutable_join()->set_first_step(first_step_);
  const HubDesk::Joined back = desk_.join(again);
  const auto enrolled = back.control.stream->take(Frame::kEnrolled);
  ASSERT_TRUE(enrolled);
  EXPECT_EQ(enrolled->enrolled().from_step(), first_step_);
  desk_.update(all_[1], 1, dense_payload(2));
  EXPECT_EQ(desk_.core.status().next_round, 2U);
}

TEST_F(HubCoreLives, NobodyIsFurtherThanTheModel) {
  desk_.breaks(anew_.lane);
  Frame again = desk_.rejoin_frame("replica-0", 1);
  again.mutable_join()->set_first_step(1'000'000);
  desk_.breaks(all_[1].control);
  const HubDesk::Joined back = desk_.join(again);
  EXPECT_LE(desk_.core.status().next_round, 3U);
}

TEST_F(HubCoreLives, RoundsThatNobodyCanFillCloseWhenAllStartAnew) {
  desk_.breaks(all_[1].control);
  desk_.report(anew_, loaded_report(first_step_, 1));
  EXPECT_EQ(desk_.core.status().next_round, first_step_);
  EXPECT_EQ(slots_in(desk_.rounds.back()), std::vector<std::size_t>{0});
}

// Closed or not: it may come back before the others have submitted.
TEST(HubCore, WhoComesBackIsToldWhatIsInOfIt) {
  HubDesk desk(desk_setup("dd-sgd"));
  auto all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(2));
  desk.breaks(all[0].control);
  auto back = desk.join(desk.rejoin_frame("replica-0"));
  EXPECT_EQ(back.welcome.contributed().step(), 0U);
  const Attendance attendance{.since = 0, .sat_out = {{1, 1}}};
  desk.update(back, 2, dense_payload(3), 0, attendance);  // that of step 1 is lost
  desk.breaks(back.control);
  desk.update(all[1], 1, dense_payload(2));
  back = desk.join(desk.rejoin_frame("replica-0", 1));
  EXPECT_EQ(back.welcome.contributed().step(), 2U);
  EXPECT_EQ(attendance_from(back.welcome.contributed().attendance(), 2).value(), attendance);
  desk.breaks(back.control);
  desk.update(all[1], 2, dense_payload(2));
  EXPECT_EQ(slots_in(desk.rounds.back()), (std::vector<std::size_t>{0, 1}));
  back = desk.join(desk.rejoin_frame("replica-0", 1));
  EXPECT_EQ(attendance_from(back.welcome.contributed().attendance(), 2).value(), attendance);
  desk.breaks(back.control);
  EXPECT_FALSE(desk.join(desk.rejoin_frame("replica-0", 3)).welcome.has_contributed());
}

TEST(HubCore, AnUpdateCannotDependOnWhatComesAfterIt) {
  HubDesk desk;
  auto all = desk.start();
  desk.update(all[0], 0, dense_payload(1), 0, {.since = 1});
  EXPECT_EQ(desk.core.status().rejected, 1U);
  EXPECT_TRUE(all[0].control.is_gone());
}

TEST(HubCore, AResubmissionIsInOnce) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.breaks(all[0].lane);  // it cannot know that all of it arrived
  Frame again = desk.rejoin_frame("replica-0");
  const HubDesk::Joined back = desk.join(again);
  desk.update(back, 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(2));
  ASSERT_EQ(desk.rounds.size(), 2U);
  EXPECT_EQ(slots_in(desk.rounds[1]), (std::vector<std::size_t>{0, 1}));
  const auto closed = back.control.stream->take(Frame::kClosed);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->closed().own(), digest_of(dense_payload(1)));
}

TEST(HubCore, WhoIsSlowerThanTheJournalForgetsGetsASnapshot) {
  HubSetup setup = desk_setup();
  setup.training.journal.rounds = 6;
  HubDesk desk(std::move(setup));
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.breaks(all[0].control);
  for (std::uint64_t step = 0; step < 6; ++step) desk.update(all[1], step, dense_payload(1));
  Frame again = desk.rejoin_frame("replica-0");
  desk.holds_lanes = true;
  const HubDesk::Joined back = desk.join(again);
  for (std::uint64_t step = 6; step < 30; ++step) desk.update(all[1], step, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 30U);
  EXPECT_FALSE(back.control.stream->take(Frame::kRestart));
  back.lane.stream->is_held = false;
  desk.advance(Seconds(0.1));
  EXPECT_TRUE(back.control.stream->take(Frame::kRestart));
  desk.report(back, loaded_report(30, 1));
  EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled));
}

TEST(HubCore, ReportsOfMeasurementsAloneLeaveTheStepAsItWas) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  v1::Report report;
  report.set_step(7);
  report.set_loss(0.5);
  report.set_compute_s(0.1);
  desk.report(all[0], report);
  desk.report(all[0], {});
  EXPECT_EQ(desk.core.status().replicas.at("replica-0").step, 7U);
  EXPECT_EQ(desk.core.status().replicas.at("replica-0").loss, 0.5);
}

TEST(HubCore, AJournalThatCannotBeWrittenEndsTheRunAndNobodyStartsAnother) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "longhaul_hub_core_no_journal";
  std::filesystem::remove_all(directory);
  HubSetup setup = desk_setup("d-sgd", 1);
  setup.training.directory = directory;
  setup.training.journal.log_rounds = 2;
  HubDesk desk(std::move(setup));
  const HubDesk::Joined a = desk.start(1).front();
  std::filesystem::remove_all(directory);
  std::ofstream(directory) << "a file";
  for (std::uint64_t step = 0; step < 2; ++step) desk.update(a, step, dense_payload(1));
  EXPECT_FALSE(desk.core.status().is_started);
  EXPECT_TRUE(a.control.stream->take(Frame::kGoodbye));
  desk.breaks(a.control);
  for (const char* name : {"replica-0", "another"}) {
    const auto refused = desk.refusal(join_frame(name));
    ASSERT_TRUE(refused);
    EXPECT_FALSE(refused->is_final());
  }
  std::filesystem::remove(directory);
}

}  // namespace
}  // namespace longhaul
