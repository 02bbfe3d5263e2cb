// The hub's journal: what a hub that was killed finds again.
#include "longhaul/hub/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "longhaul/base/file.h"
#include "longhaul/hub/round_log.h"
#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using testing::dense_payload;
using testing::desk_setup;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HubDesk;
using ::testing::IsEmpty;

constexpr std::uint64_t kRun = 77;

JournalRound round_at(std::uint64_t step) {
  return {.id = {.step = step},
          .from = step == 0 ? RoundId{} : after({.step = step - 1}),
          .number = step,
          .elements = testing::kDeskElements,
          .contributors = {{.slot = 0, .digest = step},
                           {.slot = 2, .digest = step + 1, .attendance = {.since = step}}},
          .mean = testing::checked_payload(static_cast<float>(step))};
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
    const auto left = Journal::read(directory_, kRun);
    std::vector<std::uint64_t> steps;
    if (!left.ok() || !left->has_value()) return steps;
    for (const JournalRound& round : (*left)->rounds) steps.push_back(round.id.step);
    return steps;
  }

  [[nodiscard]] Journal::Left read() const {
    auto left = Journal::read(directory_, kRun);
    EXPECT_TRUE(left.ok() && left->has_value());
    return left.ok() && left->has_value() ? std::move(**left) : Journal::Left{};
  }
  [[nodiscard]] bool kept(Journal& journal, std::uint64_t step) const {
    return kept(journal, RoundId{.step = step});
  }
  [[nodiscard]] bool kept(Journal& journal, RoundId next) const {
    return journal.keep_in(directory_, kRun, State{}, next).ok() && journal.settle().ok();
  }

  std::filesystem::path directory_ = testing::test_directory();
};

TEST_F(JournalTest, WhatAKilledHubHasNotFinishedGoes) {
  std::filesystem::create_directories(directory_);
  for (const char* name : {"snapshot-1.safetensors.7-0.tmp", "rounds-1.log.7-0.tmp", "notes.tmp"})
    std::ofstream(directory_ / name) << "half";
  remove_unfinished(directory_);
  EXPECT_EQ(files_in(directory_), std::vector<std::string>{"notes.tmp"});
}

TEST_F(JournalTest, GivesBackWhatWasLogged) {
  EXPECT_FALSE(Journal::read(directory_, kRun)->has_value());
  Journal journal;
  ASSERT_TRUE(kept(journal, 5));
  JournalRound round = round_at(5);
  round.number = 0;  // the first that closes
  round.id.part = 3;
  round.from = {.step = 4, .part = 2};
  round.next_plan = Plan{.keep_ratio = 0.25, .delay_steps = 3, .keep_ratios = {0.5, 0.125}};
  round.contributors[1].attendance = {.since = 1, .sat_out = {{2, 2}, {4, 4}}};
  ASSERT_TRUE(journal.log(round).ok());
  const auto left = Journal::read(directory_, kRun);
  ASSERT_TRUE(left.ok() && left->has_value());
  ASSERT_EQ((*left)->rounds.size(), 1U);
  const JournalRound& found = (*left)->rounds[0];
  EXPECT_EQ(found.contributors, round.contributors);
  EXPECT_EQ(found.id, round.id);
  EXPECT_EQ(found.from, round.from);
  EXPECT_EQ(found.number, 0U);
  EXPECT_EQ(found.contributor(2)->digest, 6U);
  EXPECT_EQ(found.contributor(1), nullptr);
  EXPECT_EQ(*found.mean.bytes(), *round.mean.bytes());
  EXPECT_EQ(found.next_plan, round.next_plan);
}

TEST_F(JournalTest, HoldsTheRoundsOfAStepApart) {
  Journal journal({.rounds = 2});
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint32_t part = 0; part < 3; ++part) {
    JournalRound round = round_at(0);
    round.id.part = part;
    round.from = journal.end();
    round.number = part;
    ASSERT_TRUE(journal.log(round).ok());
    journal.add(std::move(round), 100);
  }
  EXPECT_EQ(journal.end(), (RoundId{.step = 0, .part = 3}));
  EXPECT_EQ(journal.first_from({})->id, (RoundId{.step = 0, .part = 1}));
  EXPECT_TRUE(journal.reaches_back_to({.step = 0, .part = 1}));
  EXPECT_FALSE(journal.reaches_back_to({}));
  const auto left = Journal::read(directory_, kRun);
  ASSERT_TRUE(left.ok() && left->has_value());
  ASSERT_EQ((*left)->rounds.size(), 3U);
  for (std::uint32_t part = 0; part < 3; ++part)
    EXPECT_EQ((*left)->rounds[part].id, (RoundId{.step = 0, .part = part}));
}

// Of three rounds of a step, the snapshot has merged the first.
TEST_F(JournalTest, ASnapshotBetweenTheRoundsOfAStepNeedsOnlyTheLaterOnes) {
  Journal journal;
  for (std::uint32_t part = 0; part < 3; ++part) {
    JournalRound round = round_at(0);
    round.id.part = part;
    round.from = journal.end();
    round.number = part;
    journal.add(std::move(round), 0);
  }
  ASSERT_TRUE(kept(journal, RoundId{.step = 0, .part = 1}));
  EXPECT_EQ(read().rounds.size(), 3U);
  const ByteBuffer whole = read_file(log_file(), 1 << 20).value();
  const std::size_t record = (whole.size() - kLogHeaderBytes) / 3;
  const auto with_damage_at = [&](std::size_t at) {
    ByteBuffer bytes = whole;
    bytes[at] ^= std::byte{1};
    EXPECT_TRUE(write_file_atomically(log_file(), bytes).ok());
    return read();
  };
  const Journal::Left merged = with_damage_at(kLogHeaderBytes + 1);
  EXPECT_EQ(merged.loss, "");
  ASSERT_EQ(merged.rounds.size(), 2U);
  EXPECT_EQ(merged.rounds[0].id, (RoundId{.step = 0, .part = 1}));
  const Journal::Left unmerged = with_damage_at(kLogHeaderBytes + record + record / 2);
  EXPECT_THAT(unmerged.loss, HasSubstr("1 round that had closed is lost"));
}

// Both payloads are whole, and neither is the one that its record tells of.
TEST_F(JournalTest, APayloadOfAnotherRecordIsDamage) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 2; ++step) ASSERT_TRUE(journal.log(round_at(step)).ok());
  ByteBuffer bytes = read_file(log_file(), 1 << 20).value();
  const auto size = static_cast<std::ptrdiff_t>(round_at(0).mean.size());
  std::ranges::copy(dense_payload(0), bytes.end() - size);
  ASSERT_TRUE(write_file_atomically(log_file(), bytes).ok());
  EXPECT_THAT(read().loss, HasSubstr("1 round that had closed is lost"));
}

TEST_F(JournalTest, EveryPrefixOfALogEndsBeforeTheRoundThatIsNotWhole) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 3; ++step) ASSERT_TRUE(journal.log(round_at(step)).ok());
  std::size_t least = steps_left().size();
  ASSERT_EQ(least, 3U);
  for (std::size_t size = std::filesystem::file_size(log_file()); size-- > kLogHeaderBytes;) {
    std::filesystem::resize_file(log_file(), size);
    const Journal::Left left = read();
    ASSERT_TRUE(left.rounds.size() == least || left.rounds.size() + 1 == least) << size;
    least = left.rounds.size();
    EXPECT_EQ(left.loss, "") << size;
    if (left.torn.empty()) {
      EXPECT_THAT(left.notes, IsEmpty());  // a record ends here
      continue;
    }
    const std::size_t bytes = size - left.torn[0].second;
    EXPECT_THAT(left.notes, ElementsAre(HasSubstr("its last " + std::to_string(bytes) + " bytes")));
    const std::string name = "step " + std::to_string(least) + ", part 0";
    EXPECT_EQ(left.notes[0].find(name) != std::string::npos, bytes >= kRecordHeaderBytes);
  }
  EXPECT_EQ(least, 0U);
}

TEST_F(JournalTest, ALogThatIsShorterThanItsHeaderHasLostItsRounds) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  ASSERT_TRUE(journal.log(round_at(0)).ok());
  for (const std::size_t size : {kLogHeaderBytes - 1, std::size_t{3}, std::size_t{0}}) {
    std::filesystem::resize_file(log_file(), size);
    EXPECT_THAT(read().loss, HasSubstr("nobody can tell how many")) << size;
  }
  std::filesystem::remove(log_file());
  EXPECT_THAT(read().loss, HasSubstr("rounds-000000000000.log is missing"));
}

TEST_F(JournalTest, ADamagedRoundCostsNoOther) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  std::vector<std::uintmax_t> ends;
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(journal.log(round_at(step)).ok());
    ends.push_back(std::filesystem::file_size(log_file()));
  }
  const ByteBuffer whole = read_file(log_file(), 1 << 20).value();
  for (std::size_t at = ends[0]; at < ends[1]; ++at) {
    ByteBuffer bytes = whole;
    bytes[at] ^= std::byte{4};
    ASSERT_TRUE(write_file_atomically(log_file(), bytes).ok());
    const Journal::Left left = read();
    ASSERT_EQ(left.rounds.size(), 1U) << at;
    ASSERT_THAT(left.loss, AllOf(HasSubstr("1 round that had closed is lost"),
                                 HasSubstr("2 rounds after the first of them can be read")));
    ASSERT_THAT(left.notes, ElementsAre(HasSubstr(std::to_string(ends[1] - ends[0]) +
                                                  " bytes from byte " + std::to_string(ends[0]))));
    ASSERT_THAT(left.torn, IsEmpty());
    ASSERT_THAT(left.damaged, ElementsAre(log_file()));
  }
}

TEST_F(JournalTest, ADamagedRoundBeforeTheSnapshotIsNotNeeded) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(journal.log(round_at(step)).ok());
    journal.add(round_at(step), 0);
  }
  const std::filesystem::path first = log_file();
  ASSERT_TRUE(kept(journal, 4));
  ASSERT_TRUE(journal.log(round_at(4)).ok());
  ByteBuffer bytes = read_file(first, 1 << 20).value();
  bytes[kLogHeaderBytes + kRecordHeaderBytes + 1] ^= std::byte{1};
  ASSERT_TRUE(write_file_atomically(first, bytes).ok());
  const Journal::Left left = read();
  EXPECT_EQ(left.loss, "");
  EXPECT_EQ(left.rounds.size(), 4U);
  EXPECT_THAT(left.notes, ElementsAre(HasSubstr("damaged"), HasSubstr("1 round")));
}

TEST_F(JournalTest, ADamagedSnapshotIsReplacedByTheOneBeforeIt) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  for (std::uint64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(journal.log(round_at(step)).ok());
    journal.add(round_at(step), 0);
  }
  ASSERT_TRUE(kept(journal, 4));
  ASSERT_TRUE(journal.log(round_at(4)).ok());
  const std::filesystem::path newest = directory_ / "snapshot-000000000004.safetensors";
  ByteBuffer bytes = read_file(newest, 1 << 20).value();
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(write_file_atomically(newest, bytes).ok());
  const Journal::Left left = read();
  EXPECT_EQ(left.loss, "");
  EXPECT_EQ(left.state.value<std::uint64_t>(kRoundsMerged).value(), 0U);
  EXPECT_EQ(left.rounds.size(), 5U);
  EXPECT_THAT(left.damaged, ElementsAre(newest));
  const std::filesystem::path older = directory_ / "snapshot-000000000000.safetensors";
  ASSERT_TRUE(write_file_atomically(older, bytes).ok());
  const auto none = Journal::read(directory_, kRun);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no snapshot can be read"));
}

TEST_F(JournalTest, FilesOfAnotherRunAreNotRead) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  const auto other = Journal::read(directory_, kRun + 1);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("of another run"));
}

TEST_F(JournalTest, ARunRecordIsKeptTwice) {
  ASSERT_TRUE(Journal::write_run(directory_, {.id = 7, .task = 8, .slots = {{"a", 1}}}).ok());
  for (const std::string name : {"run.safetensors", "run-copy.safetensors"}) {
    const ByteBuffer whole = read_file(directory_ / name, 1 << 20).value();
    ByteBuffer bytes = whole;
    bytes.back() ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(directory_ / name, bytes).ok());
    const auto run = Journal::read_run(directory_);
    ASSERT_TRUE(run.ok() && run->has_value());
    EXPECT_EQ((*run)->slots.at("a"), 1U);
    EXPECT_THAT((*run)->note, HasSubstr(name + ": damaged"));
    EXPECT_THAT((*run)->damaged, ElementsAre(directory_ / name));
    ASSERT_TRUE(write_file_atomically(directory_ / name, whole).ok());
  }
  for (const std::string name : {"run.safetensors", "run-copy.safetensors"})
    ASSERT_TRUE(write_file_atomically(directory_ / name, {}).ok());
  EXPECT_THAT(Journal::read_run(directory_).error().message, HasSubstr("cannot go on"));
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
  ASSERT_TRUE(journal.keep_in(directory_, kRun, State{}, {}).ok());
  ASSERT_TRUE(journal.settle().ok());
  std::filesystem::create_directory(directory_ / "snapshot-000000000001.safetensors");
  std::ofstream(directory_ / "snapshot-000000000001.safetensors/in-the-way") << 'x';
  ASSERT_TRUE(journal.keep_in(directory_, kRun, State{}, {.step = 1}).ok());
  EXPECT_FALSE(journal.settle().ok());
}

TEST_F(JournalTest, LargeSnapshotsAreWrittenSeldom) {
  Journal journal({.log_bytes = 1});
  State state;
  state.tensors["shared"].resize(1000);
  ASSERT_TRUE(journal.keep_in(directory_, kRun, std::move(state), {}).ok());
  std::uint64_t rounds = 0;
  while (!journal.wants_snapshot()) ASSERT_TRUE(journal.log(round_at(rounds++)).ok());
  EXPECT_GT(rounds * (round_at(0).mean.size() + 150), 4U * 4000U);
}

TEST_F(JournalTest, HoldsNoMoreAtHandThanItMay) {
  Journal few({.rounds = 3});
  for (std::uint64_t step = 0; step < 10; ++step) few.add(round_at(step), 100);
  EXPECT_EQ(few.rounds(), 3U);
  EXPECT_EQ(few.first_from({.step = 0})->id.step, 7U);
  EXPECT_EQ(few.first_from({.step = 9})->id.step, 9U);
  EXPECT_EQ(few.first_from({.step = 10}), nullptr);
  EXPECT_TRUE(few.reaches_back_to({.step = 7}));
  EXPECT_FALSE(few.reaches_back_to({.step = 6}));
  const std::size_t size = round_at(0).mean.size();
  Journal small({.bytes = 2 * size});
  for (std::uint64_t step = 0; step < 10; ++step) small.add(round_at(step), 100);
  EXPECT_EQ(small.bytes(), 2 * size);
}

TEST_F(JournalTest, HoldsWhatASnapshotNeedsWhateverItMay) {
  Journal journal({.rounds = 3});
  for (std::uint64_t step = 0; step < 10; ++step) journal.add(round_at(step), 2);
  EXPECT_EQ(journal.first_from({.step = 0})->id.step, 2U);
}

JournalRound round_of_a_period(std::uint64_t step, RoundId from) {
  JournalRound round = round_at(step);
  round.from = from;
  round.number = step / 4;
  return round;
}

TEST_F(JournalTest, StepsWithoutARoundAreNoGap) {
  Journal journal({.rounds = 2});
  EXPECT_EQ(journal.end(), RoundId{});
  for (std::uint64_t step = 3; step < 20; step += 4)
    journal.add(round_of_a_period(step, journal.end()), 100);
  EXPECT_EQ(journal.end(), after({.step = 19}));
  EXPECT_EQ(journal.first_from({.step = 16})->id.step, 19U);
  EXPECT_TRUE(journal.reaches_back_to({.step = 13}))
      << "the last one that was let go is of step 11";
  EXPECT_TRUE(journal.reaches_back_to({.step = 12}));
  EXPECT_FALSE(journal.reaches_back_to({.step = 11}));
}

TEST_F(JournalTest, ALogThatIsMissingBetweenTwoIsAGap) {
  Journal journal;
  for (const std::uint64_t first : {3U, 11U, 19U}) {
    ASSERT_TRUE(kept(journal, first));
    for (const std::uint64_t step : {first, first + 4U}) {
      const JournalRound round =
          round_of_a_period(step, step == 3 ? RoundId{} : after({.step = step - 4}));
      ASSERT_TRUE(journal.log(round).ok());
      journal.add(round, 0);
    }
  }
  EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{3, 7, 11, 15, 19, 23}));
  std::filesystem::remove(directory_ / "rounds-000000000011.log");
  EXPECT_EQ(steps_left(), (std::vector<std::uint64_t>{19, 23}));
}

// A directory of format 2, which is never edited: another format gets one of its own.
constexpr const char* kGolden = "tests/hub/golden/v2";  // CTest runs in the root

TEST_F(JournalTest, IsWrittenAsTheGoldenDirectory) {
  ASSERT_TRUE(
      Journal::write_run(directory_, {.id = kRun, .task = 5, .slots = {{"a", 0}, {"b", 2}}}).ok());
  State state;
  state.tensors["shared"] = {1, 2, 3, 4};
  Journal journal;
  ASSERT_TRUE(journal.keep_in(directory_, kRun, state, {}).ok() && journal.settle().ok());
  for (std::uint64_t step = 0; step < 2; ++step) {
    JournalRound round = round_at(step);
    round.id.part = 1;
    round.from = journal.end();
    if (step == 1) round.next_plan = Plan{.keep_ratio = 0.25, .delay_steps = 3};
    ASSERT_TRUE(journal.log(round).ok());
    journal.add(std::move(round), 0);
  }
  ASSERT_TRUE(journal.keep_in(directory_, kRun, state, {.step = 1}).ok() && journal.settle().ok());
  const std::vector<std::string> names = files_in(kGolden);
  EXPECT_EQ(files_in(directory_), names);
  for (const std::string& name : names)
    EXPECT_EQ(read_file(directory_ / name, 1 << 20).value(),
              read_file(std::filesystem::path(kGolden) / name, 1 << 20).value())
        << name;
}

TEST_F(JournalTest, ReadsTheGoldenDirectory) {
  const auto run = Journal::read_run(kGolden);
  ASSERT_TRUE(run.ok() && run->has_value());
  EXPECT_EQ((*run)->slots.at("b"), 2U);
  EXPECT_EQ((*run)->note, "");
  const auto left = Journal::read(kGolden, kRun);
  ASSERT_TRUE(left.ok() && left->has_value());
  EXPECT_THAT((*left)->notes, IsEmpty());
  EXPECT_EQ((*left)->loss, "");
  EXPECT_EQ((*left)->closed, 2U);
  ASSERT_EQ((*left)->rounds.size(), 2U);
  EXPECT_EQ((*left)->rounds[1].id, (RoundId{.step = 1, .part = 1}));
  EXPECT_EQ((*left)->rounds[1].from, (RoundId{.step = 0, .part = 2}));
  EXPECT_EQ((*left)->rounds[1].next_plan->delay_steps, 3);
  EXPECT_EQ(*(*left)->rounds[1].mean.bytes(), dense_payload(1));
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

TEST_F(HubJournal, AnOlderDirectoryIsRefusedWithASentence) {
  std::filesystem::create_directories(directory_);
  std::filesystem::copy("tests/base/golden/v1/state.safetensors", directory_ / "run.safetensors");
  HubDesk desk(hub_setup());
  EXPECT_THAT(desk.core.resume().error().message,
              HasSubstr("written by an older Longhaul, format 1"));
}

// Each time the one before it must still be there.
TEST_F(HubJournal, GoesOnHoweverOftenTheNewestSnapshotIsDamaged) {
  run();
  for (int i = 0; i < 3; ++i) {
    std::filesystem::path newest;
    for (const std::string& name : files_in(directory_)) {
      if (name.starts_with("snapshot-") && name.ends_with(".safetensors"))
        newest = directory_ / name;
    }
    ByteBuffer bytes = read_file(newest, 1 << 20).value();
    bytes.back() ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(newest, bytes).ok());
    HubDesk desk(hub_setup());
    const Status resumed = desk.core.resume();
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(desk.core.status().next_round, 10U);
    EXPECT_TRUE(std::filesystem::exists(newest.string() + ".damaged"));
  }
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
  std::filesystem::resize_file(newest, kLogHeaderBytes);
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
