// The hub's journal: what a hub that was killed finds again.
#include "longhaul/hub/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "longhaul/base/file.h"
#include "longhaul/hub/round_log.h"
#include "tests/hub/journal_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using testing::dense_payload;
using ::testing::ElementsAre;
using testing::files_in;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JournalTest;
using testing::kJournalRun;
using testing::round_at;

TEST_F(JournalTest, WhatAKilledHubHasNotFinishedGoes) {
  std::filesystem::create_directories(directory_);
  for (const char* name : {"snapshot-1.safetensors.7-0.tmp", "rounds-1.log.7-0.tmp", "notes.tmp"})
    std::ofstream(directory_ / name) << "half";
  remove_unfinished(directory_);
  EXPECT_EQ(files_in(directory_), std::vector<std::string>{"notes.tmp"});
}

TEST_F(JournalTest, GivesBackWhatWasLogged) {
  EXPECT_FALSE(Journal::read(directory_, kJournalRun)->has_value());
  Journal journal;
  ASSERT_TRUE(kept(journal, 5));
  JournalRound round = round_at(5);
  round.number = 0;  // the first that closes
  round.id.part = 3;
  round.from = {.step = 4, .part = 2};
  round.next_plan = Plan{.keep_ratio = 0.25, .delay_steps = 3, .keep_ratios = {0.5, 0.125}};
  round.contributors[1].attendance = {.since = 1, .sat_out = {{2, 2}, {4, 4}}};
  ASSERT_TRUE(journal.log(round).ok());
  const auto left = Journal::read(directory_, kJournalRun);
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
  const auto left = Journal::read(directory_, kJournalRun);
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
  const auto none = Journal::read(directory_, kJournalRun);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no snapshot can be read"));
}

TEST_F(JournalTest, FilesOfAnotherRunAreNotRead) {
  Journal journal;
  ASSERT_TRUE(kept(journal, 0));
  const auto other = Journal::read(directory_, kJournalRun + 1);
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
  ASSERT_TRUE(journal.keep_in(directory_, kJournalRun, State{}, {}).ok());
  ASSERT_TRUE(journal.settle().ok());
  std::filesystem::create_directory(directory_ / "snapshot-000000000001.safetensors");
  std::ofstream(directory_ / "snapshot-000000000001.safetensors/in-the-way") << 'x';
  ASSERT_TRUE(journal.keep_in(directory_, kJournalRun, State{}, {.step = 1}).ok());
  EXPECT_FALSE(journal.settle().ok());
}

TEST_F(JournalTest, LargeSnapshotsAreWrittenSeldom) {
  Journal journal({.log_bytes = 1});
  State state;
  state.tensors["shared"].resize(1000);
  ASSERT_TRUE(journal.keep_in(directory_, kJournalRun, std::move(state), {}).ok());
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
      Journal::write_run(directory_, {.id = kJournalRun, .task = 5, .slots = {{"a", 0}, {"b", 2}}})
          .ok());
  State state;
  state.tensors["shared"] = {1, 2, 3, 4};
  Journal journal;
  ASSERT_TRUE(journal.keep_in(directory_, kJournalRun, state, {}).ok() && journal.settle().ok());
  for (std::uint64_t step = 0; step < 2; ++step) {
    JournalRound round = round_at(step);
    round.id.part = 1;
    round.from = journal.end();
    if (step == 1) round.next_plan = Plan{.keep_ratio = 0.25, .delay_steps = 3};
    ASSERT_TRUE(journal.log(round).ok());
    journal.add(std::move(round), 0);
  }
  ASSERT_TRUE(journal.keep_in(directory_, kJournalRun, state, {.step = 1}).ok() &&
              journal.settle().ok());
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
  const auto left = Journal::read(kGolden, kJournalRun);
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

}  // namespace
}  // namespace longhaul
