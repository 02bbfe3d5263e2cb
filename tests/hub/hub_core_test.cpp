// The hub's state machine: what it counts, what it rejects, whom it waits for.
#include "longhaul/hub/hub_core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::HubDesk;
using testing::join_frame;
using testing::slots_in;

TEST(HubCore, WeightsAreTheScenariosBySlot) {
  HubOptions options = desk_options();
  options.weights = {1, 3};
  HubDesk desk(std::move(options));
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 0, dense_payload(1));
  desk.update(all[1], 0, dense_payload(5));
  ASSERT_EQ(desk.rounds.size(), 2U);
  const JournalRound* round = desk.core.training()->journal().first_from({});
  ASSERT_NE(round, nullptr);
  std::vector<float> mean(testing::kDeskElements);
  add(round->mean.view(), 1.0F, mean);
  EXPECT_EQ(mean, std::vector<float>(testing::kDeskElements, 4.0F));
}

HubOptions desk_with_periods(int period, int delay) {
  HubOptions options = desk_options("local-sgd");
  options.training.engine.recipe.plan.period_steps = period;
  options.training.engine.recipe.plan.delay_steps = delay;
  return options;
}

TEST(HubCore, ClosesARoundAtTheEndOfEachPeriod) {
  HubDesk desk(desk_with_periods(4, 0));
  const std::vector<HubDesk::Joined> all = desk.start();
  EXPECT_EQ(desk.core.status().next_round, 3U);
  for (const HubDesk::Joined& one : all) desk.update(one, 3, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 7U);
  EXPECT_EQ(desk.rounds.back().round.from, RoundId{});
  EXPECT_EQ(desk.rounds.back().standing.next_to_close, RoundId{.step = 7});
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

TEST(HubCore, RejectsARankThatItsRecipeDoesNotHave) {
  const auto of_rank = [](std::uint32_t rank) {
    ByteWriter body;
    for (const std::uint32_t number : {1U, 2U, 2U, rank}) body.u32(number);  // one matrix, 2 × 2
    for (int i = 0; i < 4; ++i) body.f32(1.0F);
    const ByteBuffer bytes = std::move(body).release();
    return seal_payload({.kind = PayloadKind::kLowRank, .elements = testing::kDeskElements},
                        {&bytes, 1});
  };
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  desk.update(all[0], 0, of_rank(0));
  EXPECT_EQ(desk.core.status().rejected, 0U);
  desk.update(all[1], 0, of_rank(1));
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

TEST(HubCore, WhoTellsOfAnotherModelThanTheOneOnItsWayIsRejected) {
  HubDesk desk;
  std::vector<HubDesk::Joined> all = desk.start();
  all[0].lane.stream->is_held = true;
  for (std::uint32_t restarts = 0; restarts < 100 && !all[0].control.is_gone(); ++restarts) {
    v1::Report report;
    report.set_step(0);
    report.set_digest(1);
    report.set_restarts(restarts);
    desk.report(all[0], report);
  }
  EXPECT_TRUE(all[0].control.is_gone());
  EXPECT_LE(desk.core.status().mismatches, 2U);
}

TEST(HubCore, AnUpdateCannotDependOnWhatComesAfterIt) {
  HubDesk desk;
  auto all = desk.start();
  desk.update(all[0], 0, dense_payload(1), 0, {.since = 1});
  EXPECT_EQ(desk.core.status().rejected, 1U);
  EXPECT_TRUE(all[0].control.is_gone());
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
  HubOptions options = desk_options("d-sgd", 1);
  options.training.directory = directory;
  options.training.journal.log_rounds = 2;
  HubDesk desk(std::move(options));
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
