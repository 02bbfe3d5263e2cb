#include "longhaul/round/round_book.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/codec/checked.h"

namespace longhaul {
namespace {

CheckedPayload bytes_of(std::uint32_t value) {
  return testing_data::dense({static_cast<float>(value)});
}

TimePoint at(double seconds) { return time_after(TimePoint{}, Seconds(seconds)); }

RoundBook book_of(std::size_t members, const RoundOptions& policy = {}) {
  RoundBook book(policy, {});
  for (std::size_t slot = 0; slot < members; ++slot) book.join(slot, 1.0F, {.step = 0});
  return book;
}

// Of a model in one part.
ClosingRound close_step(RoundBook& book) {
  ClosingRound closing = book.close();
  book.expect({.step = closing.round.step + 1});
  return closing;
}

TEST(RoundBook, WaitsForEveryLiveMember) {
  RoundBook book = book_of(3);
  EXPECT_EQ(book.submit(0, {.step = 0}, bytes_of(1), at(1)), SubmitOutcome::kIn);
  EXPECT_EQ(book.submit(2, {.step = 0}, bytes_of(3), at(2)), SubmitOutcome::kIn);
  EXPECT_FALSE(book.closes_at());
  EXPECT_EQ(book.submit(1, {.step = 0}, bytes_of(2), at(3)), SubmitOutcome::kIn);
  EXPECT_EQ(book.closes_at(), at(3));
  const ClosingRound round = close_step(book);
  ASSERT_EQ(round.members.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(round.members[i].slot, i);
    EXPECT_EQ(round.members[i].payload.digest(),
              bytes_of(static_cast<std::uint32_t>(i + 1)).digest());
  }
  EXPECT_EQ(book.next(), RoundId{.step = 1});
}

TEST(RoundBook, ClosesInOrderThoughALaterRoundIsCompleteFirst) {
  RoundBook book = book_of(2);
  for (std::size_t slot = 0; slot < 2; ++slot) (void)book.submit(slot, {.step = 1}, {}, at(1));
  EXPECT_FALSE(book.closes_at());
  for (std::size_t slot = 0; slot < 2; ++slot) (void)book.submit(slot, {.step = 0}, {}, at(2));
  EXPECT_EQ(close_step(book).round.step, 0U);
  EXPECT_TRUE(book.closes_at());
  EXPECT_EQ(close_step(book).round.step, 1U);
}

// Two parts in one step: neither takes the place of the other.
TEST(RoundBook, RoundsOfOneStepCloseByPartEachWithUpdatesOfItsOwn) {
  RoundBook book = book_of(2);
  for (const std::uint32_t part : {1U, 0U}) {
    for (std::size_t slot = 0; slot < 2; ++slot)
      EXPECT_EQ(book.submit(slot, {.step = 0, .part = part}, bytes_of(10 + part), at(1)),
                SubmitOutcome::kIn);
  }
  EXPECT_EQ(book.last_of(1)->round, (RoundId{.step = 0, .part = 1}));
  for (const std::uint32_t part : {0U, 1U}) {
    ASSERT_TRUE(book.closes_at());
    const ClosingRound closing = book.close();
    EXPECT_EQ(closing.round, (RoundId{.step = 0, .part = part}));
    ASSERT_EQ(closing.members.size(), 2U);
    for (const Contribution& entry : closing.members)
      EXPECT_EQ(entry.payload.digest(), bytes_of(10 + part).digest());
  }
}

// One that comes while a step is half closed takes part in the rest of it.
TEST(RoundBook, AMemberMayJoinBetweenTheRoundsOfAStep) {
  RoundBook book = book_of(1);
  (void)book.submit(0, {}, bytes_of(1), at(1));
  EXPECT_EQ(book.close().members.size(), 1U);
  EXPECT_ANY_THROW(book.join(1, 1.0F, {}));
  book.join(1, 1.0F, book.next());
  EXPECT_EQ(book.submit(1, {}, {}, at(2)), SubmitOutcome::kTooLate);
  (void)book.submit(0, {.step = 0, .part = 1}, bytes_of(2), at(2));
  EXPECT_FALSE(book.closes_at()) << "it waits for the one that joined";
  (void)book.submit(1, {.step = 0, .part = 1}, bytes_of(3), at(3));
  EXPECT_EQ(book.close().members.size(), 2U);
}

TEST(RoundBook, PassesOverStepsWithoutARound) {
  RoundBook book = book_of(2);
  book.expect({.step = 3});
  EXPECT_EQ(book.submit(0, {.step = 2}, {}, at(1)), SubmitOutcome::kTooLate);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    (void)book.submit(slot, {.step = 3}, bytes_of(1), at(1));
    (void)book.submit(slot, {.step = 5}, bytes_of(2), at(1));  // of no round, as it turns out
    (void)book.submit(slot, {.step = 7}, bytes_of(3), at(1));
  }
  EXPECT_EQ(close_step(book).round.step, 3U);
  book.expect({.step = 7});
  ASSERT_TRUE(book.closes_at());
  const ClosingRound round = close_step(book);
  EXPECT_EQ(round.round.step, 7U);
  EXPECT_EQ(round.members[0].payload.digest(), bytes_of(3).digest());
  EXPECT_ANY_THROW(book.expect({.step = 7}));
}

// Else those who start anew from a snapshot, all of them, would wait for rounds that nobody can
// fill.
TEST(RoundBook, ARoundThatNobodyHereTakesPartInCloses) {
  RoundBook book = book_of(2);
  (void)book.submit(1, {.step = 0}, bytes_of(7), at(1));
  for (std::size_t slot = 0; slot < 2; ++slot) book.leave(slot);
  EXPECT_FALSE(book.closes_at());
  book.join(0, 1.0F, {.step = 2});
  ASSERT_TRUE(book.closes_at());
  EXPECT_EQ(close_step(book).members.size(), 1U);  // what was left behind
  ASSERT_TRUE(book.closes_at());
  EXPECT_TRUE(close_step(book).members.empty());
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(0, {.step = 2}, bytes_of(1), at(5));
  EXPECT_EQ(book.closes_at(), at(5));
}

TEST(RoundBook, WhatAReplicaSentBeforeItLeftCountsOnceAndNobodyWaitsForTheRest) {
  RoundBook book = book_of(3);
  (void)book.submit(2, {.step = 0}, bytes_of(9), at(1));
  book.leave(2);
  (void)book.submit(0, {.step = 0}, bytes_of(1), at(2));
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(1, {.step = 0}, bytes_of(2), at(3));
  ASSERT_EQ(book.closes_at(), at(3));
  EXPECT_EQ(close_step(book).members.size(), 3U);
  (void)book.submit(0, {.step = 1}, bytes_of(1), at(4));
  (void)book.submit(1, {.step = 1}, bytes_of(2), at(5));
  EXPECT_EQ(close_step(book).members.size(), 2U);
}

TEST(RoundBook, AnswersWhatBecameOfASubmission) {
  RoundBook book = book_of(1);
  EXPECT_EQ(book.submit(0, {.step = 0}, {}, at(1)), SubmitOutcome::kIn);
  EXPECT_EQ(book.submit(0, {.step = 0}, {}, at(1)), SubmitOutcome::kAlreadyIn);
  (void)close_step(book);
  EXPECT_EQ(book.submit(0, {.step = 0}, {}, at(2)), SubmitOutcome::kTooLate);
  EXPECT_EQ(book.submit(7, {.step = 1}, {}, at(2)), SubmitOutcome::kNotMember);
  book.join(7, 1.0F, {.step = 3});
  EXPECT_EQ(book.submit(7, {.step = 2}, {}, at(2)), SubmitOutcome::kNotMember);
  EXPECT_EQ(book.submit(7, {.step = 3}, {}, at(2)), SubmitOutcome::kIn);
}

TEST(RoundBook, ALateJoinerIsWaitedForFromItsFirstRoundOn) {
  RoundBook book = book_of(1);
  book.join(1, 1.0F, {.step = 1});
  (void)book.submit(0, {.step = 0}, {}, at(1));
  ASSERT_TRUE(book.closes_at());
  EXPECT_EQ(close_step(book).members.size(), 1U);
  (void)book.submit(0, {.step = 1}, {}, at(2));
  EXPECT_FALSE(book.closes_at());
}

TEST(RoundBook, AQuorumClosesAfterTheGrace) {
  RoundBook book = book_of(4, {.quorum = 0.5, .grace = Seconds(2)});
  (void)book.submit(3, {.step = 0}, {}, at(1));
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(0, {.step = 0}, {}, at(5));
  EXPECT_EQ(book.closes_at(), at(7));
  const ClosingRound round = close_step(book);
  ASSERT_EQ(round.members.size(), 4U);  // the divisor is the members', whoever contributed
  EXPECT_TRUE(round.members[0].has_submitted);
  EXPECT_FALSE(round.members[1].has_submitted);
}

TEST(RoundBook, NobodyThereMeansNothingCloses) {
  RoundBook book = book_of(2);
  (void)book.submit(0, {.step = 0}, {}, at(1));
  book.leave(0);
  book.leave(1);
  EXPECT_FALSE(book.closes_at());
  book.join(1, 1.0F, {.step = 0});
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(1, {.step = 0}, {}, at(2));
  EXPECT_EQ(close_step(book).members.size(), 2U);
}

// Whatever comes and goes: each submission that was taken is in exactly one closed round, once.
TEST(RoundBook, LosesNothingAndCountsNothingTwiceThroughRandomComingAndGoing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    RoundBook book({.quorum = seed % 3 == 0 ? 0.5 : 1.0, .grace = Seconds(1)}, {});
    std::set<std::pair<std::size_t, std::uint64_t>> taken;
    std::set<std::pair<std::size_t, std::uint64_t>> closed;
    for (int event = 0; event < 2000; ++event) {
      const TimePoint now = at(event);
      const std::size_t slot = random() % 5;
      const std::uint64_t step = book.next().step + random() % 3;
      switch (random() % 12) {
        case 0:
          book.join(slot, 1.0F, {.step = step});
          break;
        case 1:
          book.leave(slot);
          break;
        default:
          if (book.submit(slot, {.step = step}, {}, now) == SubmitOutcome::kIn) {
            ASSERT_TRUE(taken.emplace(slot, step).second);
          }
      }
      while (book.closes_at() && *book.closes_at() <= now) {
        const ClosingRound round = close_step(book);
        for (const Contribution& entry : round.members) {
          if (!entry.has_submitted) continue;
          ASSERT_TRUE(taken.contains({entry.slot, round.round.step}));
          ASSERT_TRUE(closed.emplace(entry.slot, round.round.step).second);
        }
      }
    }
    for (const auto& [slot, step] : taken) {
      if (step < book.next().step) {
        EXPECT_TRUE(closed.contains({slot, step}));
      }
    }
    EXPECT_GT(closed.size(), 100U);
  }
}

TEST(RoundBook, WithFewerThanTheLeastMembersNoRoundCloses) {
  RoundBook book = book_of(3, {.least = 3});
  for (std::size_t slot = 0; slot < 3; ++slot)
    (void)book.submit(slot, {.step = 0}, {}, TimePoint{});
  book.leave(2);
  EXPECT_FALSE(book.closes_at());
  book.join(2, 1, {.step = 0});
  EXPECT_TRUE(book.closes_at());
  EXPECT_EQ(book.submit(2, {.step = 0}, {}, TimePoint{}), SubmitOutcome::kAlreadyIn);
}

}  // namespace
}  // namespace longhaul
