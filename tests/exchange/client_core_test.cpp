// A replica's side of the protocol, with the test as the hub.
#include "longhaul/exchange/client_core.h"

#include <gtest/gtest.h>

#include "tests/exchange/client_desk.h"

namespace longhaul {
namespace {

using testing::checked;
using testing::ClientCoreTest;
using testing::Means;
using testing::payload_with;

TEST_F(ClientCoreTest, ConnectsAnewWithItsSessionAndSlot) {
  EXPECT_EQ(join_.session(), 0U);
  EXPECT_FALSE(join_.has_slot());
  breaks();
  connect();
  EXPECT_EQ(join_.session(), 77U);
  EXPECT_EQ(join_.slot(), 1U);
}

TEST_F(ClientCoreTest, IsToldWhatIsInOfIt) {
  EXPECT_FALSE(news_.contributed);
  Frame welcome;
  v1::Contributed& contributed = *welcome.mutable_welcome()->mutable_contributed();
  contributed.mutable_round()->set_step(9);
  contributed.mutable_attendance()->set_since(10);  // impossible
  hear(control_, welcome);
  EXPECT_FALSE(news_.contributed);
  EXPECT_EQ(news_.lost.size(), 1U);
  connect();
  contributed.mutable_attendance()->set_since(3);
  hear(control_, welcome);
  ASSERT_TRUE(news_.contributed);
  EXPECT_EQ(news_.contributed->round.step, 9U);
  EXPECT_EQ(news_.contributed->attendance, Attendance{.since = 3});
}

TEST_F(ClientCoreTest, WhoLeavesTellsTheHubAndDoesNotComeBack) {
  core_.leave();
  written(control_);
  EXPECT_TRUE(stream(control_).take(Frame::kLeave));
  EXPECT_FALSE(news_.has_left) << "the hub has not answered yet";
  breaks();
  EXPECT_TRUE(news_.has_left);
  EXPECT_TRUE(news_.lost.empty());
  EXPECT_EQ(core_.reconnections(), 0U);
  const std::size_t streams = connector_.streams.size();
  for (int i = 0; i < 100; ++i) tick(Seconds(1));
  EXPECT_EQ(connector_.streams.size(), streams);
}

TEST_F(ClientCoreTest, WhoLeavesWhileTheHubIsAwayComesBackToSaySo) {
  breaks();
  core_.leave();
  EXPECT_FALSE(news_.has_left);
  const std::size_t before = connector_.streams.size();
  for (int i = 0; i < 100 && connector_.streams.size() == before; ++i) tick(Seconds(0.1));
  control_ = connector_.streams.size();
  written(control_);
  Frame welcome;
  welcome.mutable_welcome()->set_session(77);
  hear(control_, welcome);
  written(control_);
  EXPECT_TRUE(stream(control_).take(Frame::kLeave));
  EXPECT_EQ(connector_.streams.size(), control_) << "and opens no lanes";
}

TEST_F(ClientCoreTest, AHubThatIsSilentIsGone) {
  tick(Seconds(4.9));
  EXPECT_EQ(core_.reconnections(), 0U);
  tick(Seconds(0.2));
  EXPECT_EQ(core_.reconnections(), 1U);
  EXPECT_TRUE(stream(control_).is_closed);
  EXPECT_TRUE(stream(lane_).is_closed);
}

TEST_F(ClientCoreTest, SendsAgainWhatWasNotMerged) {
  enroll(0);
  for (std::uint64_t step = 0; step < 3; ++step)
    core_.submit({.round = {.step = step}, .payload = checked(payload_with(1))});
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{0, 1, 2}));
  closed(0);
  mean(0, 5);
  breaks();
  core_.submit({.round = {.step = 3}, .payload = checked(payload_with(1))});
  connect();
  EXPECT_EQ(told_next(), after({.step = 0}));
  closed(1);
  mean(1, 6);
  enroll(2);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(news_.means, (Means{{0, 5.0F}, {1, 6.0F}}));
}

TEST_F(ClientCoreTest, AMeanThatComesAgainIsNotToldAgain) {
  enroll(0);
  for (int i = 0; i < 2; ++i) {
    closed(0, 9);
    closed(1, 9);
    mean(1, 5);
    breaks();
    connect();
  }
  closed(0, 9);
  mean(0, 5);
  EXPECT_EQ(news_.means, (Means{{1, 5.0F}, {0, 5.0F}}));
  EXPECT_EQ(news_.owns.front(), 9U);
}

// What the hub did not announce before a later round does not exist.
TEST_F(ClientCoreTest, KnowsWhichMeansItHasThoughStepsHaveNoRound) {
  enroll(0);
  closed(3);
  closed(7);
  mean(7, 6);
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{.step = 3}) << "the mean of step 3 has not come";
  closed(3);
  closed(7);
  mean(3, 5);
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{.step = 7}) << "whose mean did not come again on this connection";
  closed(7);
  mean(7, 6);
  EXPECT_EQ(news_.means, (Means{{7, 6.0F}, {3, 5.0F}}));
  breaks();
  connect();
  EXPECT_EQ(told_next(), after({.step = 7}));
}

// Neither its updates nor the means of two parts of a step take each other's place.
TEST_F(ClientCoreTest, KeepsThePartsOfAStepApart) {
  enroll(0);
  for (std::uint32_t part = 0; part < 2; ++part)
    core_.submit({.round = {.step = 4, .part = part}, .payload = checked(payload_with(1))});
  EXPECT_EQ(core_.kept().size(), 2U);
  closed(4, {}, 0);
  closed(4, {}, 1);
  mean(4, 6, 0, 1);
  EXPECT_EQ(core_.kept().begin()->first, RoundId{.step = 4});
  breaks();
  connect();
  EXPECT_EQ(told_next(), RoundId{.step = 4}) << "of which the second part has come";
  closed(4, {}, 0);
  mean(4, 5, 0, 0);
  EXPECT_EQ(news_.means, (Means{{4, 6.0F}, {4, 5.0F}}));
  breaks();
  connect();
  EXPECT_EQ(told_next(), (RoundId{.step = 4, .part = 1}));
}

TEST_F(ClientCoreTest, RoundsThatDoNotCloseInOrderEndTheConnection) {
  enroll(0);
  closed(7);
  closed(3);
  EXPECT_EQ(core_.reconnections(), 1U);
  connect();
  closed(7, {}, 1);
  closed(7, {}, 0);
  EXPECT_EQ(core_.reconnections(), 2U) << "nor the parts of a step";
}

TEST_F(ClientCoreTest, AMeanOfMoreThanTheModelEndsTheConnection) {
  enroll(0);
  Frame frame;
  frame.mutable_closed()->set_elements(1'000'000);
  frame.mutable_closed()->set_way(v1::WAY_UNION);
  hear(control_, frame);
  mean(0, 5);
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, AnUpdateWhoseMeanIsHereIsNotSent) {
  enroll(0);
  closed(0);
  mean(0, 5);
  core_.submit({.round = {.step = 0}, .payload = checked(payload_with(1))});
  EXPECT_TRUE(sent().empty());
  EXPECT_TRUE(core_.kept().empty());
}

TEST_F(ClientCoreTest, AForwardedMeanNeedsTheVeryUpdateThatItCountsOn) {
  enroll(0);
  core_.submit({.round = {.step = 0}, .payload = checked(payload_with(1))});
  Frame frame;
  frame.mutable_closed()->set_way(v1::WAY_FORWARDED);
  frame.mutable_closed()->set_own(checked(payload_with(2)).digest());
  v1::Contribution& own = *frame.mutable_closed()->add_contributions();
  own.set_slot(1);
  own.set_weight(1);
  hear(control_, frame);
  cargo({.cargo = Cargo::kMean}, {});
  EXPECT_TRUE(news_.means.empty());
  EXPECT_EQ(core_.reconnections(), 1U);
}

TEST_F(ClientCoreTest, AForwardedMeanIsHandedOverAsPayloadsAndTheOwnOneIsNotCopied) {
  enroll(0);
  const CheckedPayload kept = checked(payload_with(1));
  core_.submit({.round = {.step = 0}, .payload = kept});
  Frame frame;
  v1::Closed& closed = *frame.mutable_closed();
  closed.set_way(v1::WAY_FORWARDED);
  closed.set_own(kept.digest());
  for (const std::uint32_t slot : {0U, 1U}) {  // its own is the second
    v1::Contribution& one = *closed.add_contributions();
    one.set_slot(slot);
    one.set_weight(0.25F);
    one.set_bytes(kept.size());
  }
  hear(control_, frame);
  cargo({.cargo = Cargo::kMean}, payload_with(3));
  ASSERT_EQ(news_.last.terms.size(), 2U);
  EXPECT_EQ(news_.last.values, nullptr);
  EXPECT_EQ(news_.last.terms[1].payload.bytes(), kept.bytes());
  EXPECT_EQ(news_.last.to_vector()[0], 0.25F * 3 + 0.25F * 1);
}

TEST_F(ClientCoreTest, AForwardedMeanOfNothingIsZero) {
  enroll(0);
  core_.submit({.round = {.step = 0}});
  Frame frame;
  frame.mutable_closed()->set_way(v1::WAY_FORWARDED);
  frame.mutable_closed()->set_own(0);
  hear(control_, frame);
  cargo({.cargo = Cargo::kMean}, {});
  EXPECT_EQ(news_.last.to_vector(), std::vector<float>(testing::kClientElements));
}

TEST_F(ClientCoreTest, ARefusalForGoodIsFinalAndAnotherIsNot) {
  breaks();
  for (const bool is_final : {false, true}) {
    const std::size_t before = connector_.streams.size();
    while (connector_.streams.size() == before) tick(Seconds(0.1));
    Frame frame;
    frame.mutable_refused()->set_is_final(is_final);
    hear(connector_.streams.size(), frame);
    EXPECT_EQ(news_.failure.has_value(), is_final);
  }
}

TEST_F(ClientCoreTest, TellsWhyAConnectionIsLost) {
  breaks();
  EXPECT_EQ(news_.lost, std::vector<std::string>{"broken"});
}

TEST_F(ClientCoreTest, HearsWhoScoresTheModelAndWhatOthersScored) {
  Frame duty;
  duty.mutable_evaluate()->set_is_on(true);
  hear(control_, duty);
  EXPECT_TRUE(news_.is_evaluator);
  Frame told;
  told.mutable_evaluation()->set_step(20);
  hear(control_, told);
  EXPECT_EQ(news_.evaluations, (std::vector<std::uint64_t>{20}));
}

TEST_F(ClientCoreTest, KeepsTheLastScoreForAHubThatIsAway) {
  v1::Evaluation score;
  score.set_step(10);
  core_.tell(score);
  EXPECT_EQ(stream(control_).take(Frame::kEvaluation)->evaluation().step(), 10U);
  written(control_);
  breaks();
  for (const std::uint64_t step : {20U, 30U}) {
    score.set_step(step);
    core_.tell(score);
  }
  core_.leave();
  const StreamId before = control_;
  for (int i = 0; i < 100 && connector_.streams.size() == lane_; ++i) tick(Seconds(0.1));
  control_ = connector_.streams.size();
  ASSERT_GT(control_, before);
  written(control_);
  Frame welcome;
  welcome.mutable_welcome()->set_session(77);
  hear(control_, welcome);
  EXPECT_EQ(stream(control_).take(Frame::kEvaluation)->evaluation().step(), 30U);
  written(control_);
  EXPECT_TRUE(stream(control_).take(Frame::kLeave)) << "after the score";
}

}  // namespace
}  // namespace longhaul
