// The hub's journal: what a hub that was killed finds again.
#include "longhaul/hub/journal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "longhaul/base/file.h"
#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_setup;
using testing::HubDesk;

JournalRound round_at(std::uint64_t step) {
  return {.step = step,
          .from = step,
          .elements = testing::kDeskElements,
          .contributors = {{.slot = 0, .digest = step},
                           {.slot = 2, .digest = step + 1, .attendance = {.since = step}}},
          .mean = std::make_shared<const ByteBuffer>(dense_payload(static_cast<float>(step)))};
}

std::vector<std::string> files_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path log_file() const {
    for (const std::string& name : files_in(directory_)) {
      if (name.ends_with(".log")) return directory_ / name;
    }
    return {};
  }
  std::vector<std::uint64_t> steps_left() const {
    const auto left = Journal::read(directory_);
    std::vector<std::uint64_t> steps;
    if (!left.ok() || !left->has_value()) return steps;
    for (const JournalRound& round : (*left)->rounds) steps.push_back(round.step);
    return steps;
  }

  [[nodiscard]] bool kept(Journal& journal, std::uint64_t step) const {
    return journal.keep_in(directory_, State{}, step).ok() && journal.settle().ok();
  }

  std::filesystem::path directory_ = testing::test_directory();
};

TEST_F(JournalTest, ARoundThatNoRecordHoldsIsAnError) {
  Journal journal({.mean_bytes = 100});
  ASSERT_TRUE(kept(journal, 0));
  JournalRound round = round_at(0);
  EXPECT_TRUE(journal.log(round).ok());
  round.whole = std::make_shared<const ByteBuffer>(101 - round.mean->size());
  const Status logged = journal.log(round);
  ASSERT_FALSE(logged.ok());
  EXPECT_NE(logged.error().message.find("at most 100"), std::string::npos);
}

TEST_F(JournalTest, WhatAKilledHubHasNotFinishedGoes) {
  std::filesystem::create_directories(directory_);
  for (const char* name : {"snapshot-1.safetensors.7-0.tmp", "rounds-1.log.7-0.tmp", "notes.tmp"})
    std::ofstream(directory_ / name) << "half";
  remove_unfinished(directory_);
  EXPECT_EQ(files_in(directory_), std::vector<std::string>{"notes.tmp"});
}

TEST_F(JournalTest, GivesBackWhatWasLogged) {
  EXPECT_FALSE(Journal::read(directory_)->has_value());
  Journal journal;
  ASSERT_TRUE(kept(journal, 5));
  JournalRound round = round_at(5);
  round.next_plan = Plan{.keep_ratio = 0.25, .delay_steps = 3};
  round.contributors[1].attendance = {.since = 1, .sat_out = {{2, 2}, {4, 4}}};
  ASSERT_TRUE(journal.log(round).ok());
  const auto left = Journal::read(directory_);
  ASSERT_TRUE(left.ok() && left->has_value());
  ASSERT_EQ((*left)->rounds.size(), 1U);
  const JournalRound& found = (*left)->rounds[0];
  EXPECT_EQ(found.contributors, round.contributors);
  EXPECT_EQ(found.contributor(2)->digest, 6U);
  EXPECT_EQ(found.contributor(1), nullptr);
  EXPECT_EQ(*found.mean, *round.mean);
  EXPECT_EQ(found.next_plan->delay_steps, 3);
}

TEST_F(JournalTest, EveryPrefixOfALogEndsBeforeTheRoundThatIsNotWhole) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(journal.log(round_at(step)).ok());
  std::size_t least = steps_left().size();
  ASSERT_EQ(least, 3U);
  for (std::size_t size = std::filesystem::file_size(log_file()); size-- > 0;) {
    std::filesystem::resize_file(log_file(), size);
    const std::size_t rounds = steps_left().size();
    ASSERT_TRUE(rounds == least || rounds + 1 == least) << size;
    least = rounds;
  }
  EXPECT_EQ(least, 0U);
}

TEST_F(JournalTest, ADamagedRoundEndsTheLog) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(journal.log(round_at(step)).ok());
  ByteBuffer bytes = read_file(log_file(), 1 << 20).value();
  bytes[bytes.size() / 2] ^= std::byte{4};
  ASSERT_TRUE(write_file_atomically(log_file(), bytes).ok());
  EXPECT_EQ(steps_left(), std::vector<std::uint64_t>{0});
}

TEST_F(JournalTest, KeepsTheLastTwoSnapshotsAndNoMore) {
  Journal journal;
  for (const std::uint64_t step : {0U, 10U, 20U, 30U}) ASSERT_TRUE(kept(journal, step));
  EXPECT_EQ(files_in(directory_),
            (std::vector<std::string>{"rounds-000000000020.log", "rounds-000000000030.log",
                                      "snapshot-000000000020.safetensors",
                                      "snapshot-000000000030.safetensors"}));
}

// A hub that goes on from a snapshot and is killed again at once.
TEST_F(JournalTest, ANewLogHoldsTheRoundsAtHandFromTheBeginning) {
  Journal journal;
  for (std::uint64_t step = 0; step < 6; ++step) journal.add(round_at(step), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(kept(journal, 4));
    EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{4, 5}));
  }
  ASSERT_TRUE(journal.log(round_at(6)).ok());
  EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{4, 5, 6}));
}

// A hub that was killed while it wrote a snapshot.
TEST_F(JournalTest, WithoutItsNewestSnapshotTellsTheSameRounds) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(journal.log(round_at(step)).ok());
    journal.add(round_at(step), 0);
  }
  ASSERT_TRUE(kept(journal, 3));
  ASSERT_TRUE(journal.log(round_at(4)).ok());
  const std::vector<std::uint64_t> all = steps_left();
  ASSERT_TRUE(std::filesystem::remove(directory_ / "snapshot-000000000003.safetensors"));
  EXPECT_EQ(steps_left(), all);
  EXPECT_EQ(all, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST_F(JournalTest, ASnapshotThatCannotBeWrittenIsTold) {
  Journal journal;
  ASSERT_TRUE(journal.keep_in(directory_, State{}, 0).ok());
  ASSERT_TRUE(journal.settle().ok());
  std::filesystem::create_directory(directory_ / "snapshot-000000000001.safetensors");
  std::ofstream(directory_ / "snapshot-000000000001.safetensors/in-the-way") << 'x';
  ASSERT_TRUE(journal.keep_in(directory_, State{}, 1).ok());
  EXPECT_FALSE(journal.settle().ok());
}

TEST_F(JournalTest, LargeSnapshotsAreWrittenSeldom) {
  Journal journal({.log_bytes = 1});
  State state;
  state.tensors["shared"].resize(1000);
  ASSERT_TRUE(journal.keep_in(directory_, std::move(state), 0).ok());
  std::uint64_t rounds = 0;
  while (!journal.wants_snapshot()) ASSERT_TRUE(journal.log(round_at(rounds++)).ok());
  EXPECT_GT(rounds * (round_at(0).mean->size() + 100), 4U * 4000U);
}

TEST_F(JournalTest, HoldsNoMoreAtHandThanItMay) {
  Journal few({.rounds = 3});
  for (std::uint64_t step = 0; step < 10; ++step) few.add(round_at(step), 100);
  EXPECT_EQ(few.rounds(), 3U);
  EXPECT_EQ(few.first_from(0)->step, 7U);
  EXPECT_EQ(few.first_from(9)->step, 9U);
  EXPECT_EQ(few.first_from(10), nullptr);
  EXPECT_TRUE(few.reaches_back_to(7));
  EXPECT_FALSE(few.reaches_back_to(6));
  const std::size_t size = round_at(0).mean->size();
  Journal small({.bytes = 2 * size});
  for (std::uint64_t step = 0; step < 10; ++step) small.add(round_at(step), 100);
  EXPECT_EQ(small.bytes(), 2 * size);
}

TEST_F(JournalTest, HoldsWhatASnapshotNeedsWhateverItMay) {
  Journal journal({.rounds = 3});
  for (std::uint64_t step = 0; step < 10; ++step) journal.add(round_at(step), 2);
  EXPECT_EQ(journal.first_from(0)->step, 2U);
}

JournalRound round_of_a_period(std::uint64_t step, std::uint64_t from) {
  JournalRound round = round_at(step);
  round.from = from;
  return round;
}

TEST_F(JournalTest, StepsWithoutARoundAreNoGap) {
  Journal journal({.rounds = 2});
  EXPECT_EQ(journal.end(), 0U);
  for (std::uint64_t step = 3; step < 20; step += 4)
    journal.add(round_of_a_period(step, journal.end()), 100);
  EXPECT_EQ(journal.end(), 20U);
  EXPECT_EQ(journal.first_from(16)->step, 19U);
  EXPECT_TRUE(journal.reaches_back_to(13)) << "the last one that was let go is of step 11";
  EXPECT_TRUE(journal.reaches_back_to(12));
  EXPECT_FALSE(journal.reaches_back_to(11));
}

TEST_F(JournalTest, ALogThatIsMissingBetweenTwoIsAGap) {
  Journal journal;
  for (const std::uint64_t first : {3U, 11U, 19U}) {
    ASSERT_TRUE(kept(journal, first));
    for (const std::uint64_t step : {first, first + 4U}) {
      const JournalRound round = round_of_a_period(step, step == 3 ? 0 : step - 3);
      ASSERT_TRUE(journal.log(round).ok());
      journal.add(round, 0);
    }
  }
  EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{3, 7, 11, 15, 19, 23}));
  std::filesystem::remove(directory_ / "rounds-000000000011.log");
  EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{19, 23}));
}

// The whole hub on a journal that lost its tail.
class HubJournal : public JournalTest {
 protected:
  HubSetup hub_setup() const {
    HubSetup setup = desk_setup("dd-sgd", 1);
    setup.training.directory = directory_;
    setup.training.journal.log_rounds = 4;
    return setup;
  }
  // Ten rounds.
  void run() const {
    HubDesk desk(hub_setup());
    const std::vector<HubDesk::Joined> all = desk.start(1);
    for (std::uint64_t step = 0; step < 10; ++step) desk.update(all[0], step, dense_payload(1));
    ASSERT_EQ(desk.core.status().next_round, 10U);
  }
};

TEST_F(HubJournal, GoesOnWhereItWasKilled) {
  run();
  HubDesk desk(hub_setup());
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.core.status().next_round, 10U);
}

TEST_F(HubJournal, ReachesBackHoweverOftenTheHubIsKilled) {
  run();
  for (std::uint64_t step = 10; step < 14; ++step) {
    HubDesk desk(hub_setup());
    ASSERT_TRUE(desk.core.resume().ok());
    Frame frame = desk.rejoin_frame("replica-0");
    const HubDesk::Joined back = desk.join(frame);
    EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled));  // from the first round on
    desk.update(back, step, dense_payload(1));
    ASSERT_EQ(desk.core.status().next_round, step + 1);
  }
}

TEST_F(HubJournal, ReachesBackThoughStepsHaveNoRound) {
  HubSetup setup = hub_setup();
  setup.training.engine.recipe = find_recipe("local-sgd").value();  // a round every eight steps
  {
    HubDesk desk(setup);
    const std::vector<HubDesk::Joined> all = desk.start(1);
    desk.update(all[0], 7, dense_payload(1));
  }
  for (std::uint64_t step = 15; step < 15 + 6 * 8; step += 8) {
    HubDesk desk(setup);
    ASSERT_TRUE(desk.core.resume().ok());
    EXPECT_EQ(desk.core.status().next_round, step);
    const HubDesk::Joined back = desk.join(desk.rejoin_frame("replica-0"));
    EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled)) << "from the first round on";
    EXPECT_FALSE(back.control.stream->take(Frame::kRestart));
    desk.update(back, step, dense_payload(1));
  }
}

TEST_F(HubJournal, ANameKeepsItsSlotThoughTheHubIsKilled) {
  HubSetup setup = hub_setup();
  setup.training.replicas = 2;
  setup.start_with = 2;
  {
    HubDesk desk(setup);
    (void)desk.start(2);
  }
  HubDesk desk(setup);
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.join(testing::join_frame("replica-1")).welcome.slot(), 1U);
  EXPECT_TRUE(desk.refusal(testing::join_frame("another")));
}

TEST_F(HubJournal, AnotherRunsDirectoryIsRefused) {
  run();
  HubSetup other = hub_setup();
  other.task.set_seed(2);
  HubDesk desk(std::move(other));
  const Status resumed = desk.core.resume();
  ASSERT_FALSE(resumed.ok());
  EXPECT_NE(resumed.error().message.find("another run"), std::string::npos);
}

TEST_F(HubJournal, AReplicaOfAnotherRunIsRefusedForGood) {
  run();
  HubDesk resumed(hub_setup());
  ASSERT_TRUE(resumed.core.resume().ok());
  const Frame member = resumed.rejoin_frame("replica-0", 10);
  HubSetup elsewhere = hub_setup();
  elsewhere.training.directory.clear();  // as if the hub had been started without its journal
  HubDesk anew(std::move(elsewhere));
  const auto refused = anew.refusal(member);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
  EXPECT_FALSE(resumed.refusal(member));
}

TEST_F(HubJournal, GoesOnThoughALogBeforeTheLastSnapshotIsDamaged) {
  run();
  const std::filesystem::path older = directory_ / "rounds-000000000004.log";
  const ByteBuffer bytes = read_file(older, 1 << 20).value();
  ASSERT_TRUE(write_file_atomically(older, ByteView(bytes).first(bytes.size() / 2)).ok());
  const std::filesystem::path newest = directory_ / "rounds-000000000008.log";
  ASSERT_TRUE(std::filesystem::exists(newest));
  ASSERT_TRUE(write_file_atomically(newest, {}).ok());
  HubDesk desk(hub_setup());
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.core.status().next_round, 8U);
  // And closes rounds again.
  Frame frame = desk.rejoin_frame("replica-0", 8);
  const HubDesk::Joined back = desk.join(frame);
  desk.update(back, 8, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 9U);
}

}  // namespace
}  // namespace longhaul
