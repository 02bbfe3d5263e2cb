#include "longhaul/round/round_book.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace longhaul {
namespace {

ByteBuffer bytes_of(std::uint8_t value) { return ByteBuffer{std::byte{value}}; }

TimePoint at(double seconds) { return time_after(TimePoint{}, Seconds(seconds)); }

RoundBook book_of(std::size_t members, const RoundPolicy& policy = {}) {
  RoundBook book(policy, 0);
  for (std::size_t slot = 0; slot < members; ++slot) book.join(slot, 1.0F, 0);
  return book;
}

TEST(RoundBook, WaitsForEveryLiveMember) {
  RoundBook book = book_of(3);
  EXPECT_EQ(book.submit(0, 0, bytes_of(1), at(1)), Taken::kIn);
  EXPECT_EQ(book.submit(2, 0, bytes_of(3), at(2)), Taken::kIn);
  EXPECT_FALSE(book.closes_at());
  EXPECT_EQ(book.submit(1, 0, bytes_of(2), at(3)), Taken::kIn);
  EXPECT_EQ(book.closes_at(), at(3));
  const ClosingRound round = book.close();
  ASSERT_EQ(round.members.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(round.members[i].slot, i);
    EXPECT_EQ(round.members[i].payload, bytes_of(static_cast<std::uint8_t>(i + 1)));
  }
  EXPECT_EQ(book.next_step(), 1U);
}

TEST(RoundBook, ClosesInOrderThoughALaterRoundIsCompleteFirst) {
  RoundBook book = book_of(2);
  for (std::size_t slot = 0; slot < 2; ++slot) (void)book.submit(slot, 1, {}, at(1));
  EXPECT_FALSE(book.closes_at());
  for (std::size_t slot = 0; slot < 2; ++slot) (void)book.submit(slot, 0, {}, at(2));
  EXPECT_EQ(book.close().step, 0U);
  EXPECT_TRUE(book.closes_at());
  EXPECT_EQ(book.close().step, 1U);
}

TEST(RoundBook, PassesOverStepsWithoutARound) {
  RoundBook book = book_of(2);
  book.expect(3);
  EXPECT_EQ(book.submit(0, 2, {}, at(1)), Taken::kTooLate);
  for (std::size_t slot = 0; slot < 2; ++slot) {
    (void)book.submit(slot, 3, bytes_of(1), at(1));
    (void)book.submit(slot, 5, bytes_of(2), at(1));  // of no round, as it turns out
    (void)book.submit(slot, 7, bytes_of(3), at(1));
  }
  EXPECT_EQ(book.close().step, 3U);
  book.expect(7);
  ASSERT_TRUE(book.closes_at());
  const ClosingRound round = book.close();
  EXPECT_EQ(round.step, 7U);
  EXPECT_EQ(round.members[0].payload, bytes_of(3));
  EXPECT_ANY_THROW(book.expect(7));
}

// Else those who start anew from a snapshot, all of them, would wait for rounds that nobody can
// fill.
TEST(RoundBook, ARoundThatNobodyHereTakesPartInCloses) {
  RoundBook book = book_of(2);
  (void)book.submit(1, 0, bytes_of(7), at(1));
  for (std::size_t slot = 0; slot < 2; ++slot) book.leave(slot);
  EXPECT_FALSE(book.closes_at());
  book.join(0, 1.0F, 2);
  ASSERT_TRUE(book.closes_at());
  EXPECT_EQ(book.close().members.size(), 1U);  // what was left behind
  ASSERT_TRUE(book.closes_at());
  EXPECT_TRUE(book.close().members.empty());
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(0, 2, bytes_of(1), at(5));
  EXPECT_EQ(book.closes_at(), at(5));
}

TEST(RoundBook, WhatAReplicaSentBeforeItLeftCountsOnceAndNobodyWaitsForTheRest) {
  RoundBook book = book_of(3);
  (void)book.submit(2, 0, bytes_of(9), at(1));
  book.leave(2);
  (void)book.submit(0, 0, bytes_of(1), at(2));
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(1, 0, bytes_of(2), at(3));
  ASSERT_EQ(book.closes_at(), at(3));
  EXPECT_EQ(book.close().members.size(), 3U);
  (void)book.submit(0, 1, bytes_of(1), at(4));
  (void)book.submit(1, 1, bytes_of(2), at(5));
  EXPECT_EQ(book.close().members.size(), 2U);
}

TEST(RoundBook, AnswersWhatBecameOfASubmission) {
  RoundBook book = book_of(1);
  EXPECT_EQ(book.submit(0, 0, {}, at(1)), Taken::kIn);
  EXPECT_EQ(book.submit(0, 0, {}, at(1)), Taken::kAlreadyIn);
  (void)book.close();
  EXPECT_EQ(book.submit(0, 0, {}, at(2)), Taken::kTooLate);
  EXPECT_EQ(book.submit(7, 1, {}, at(2)), Taken::kNotMember);
  book.join(7, 1.0F, 3);
  EXPECT_EQ(book.submit(7, 2, {}, at(2)), Taken::kNotMember);
  EXPECT_EQ(book.submit(7, 3, {}, at(2)), Taken::kIn);
}

TEST(RoundBook, ALateJoinerIsWaitedForFromItsFirstRoundOn) {
  RoundBook book = book_of(1);
  book.join(1, 1.0F, 1);
  (void)book.submit(0, 0, {}, at(1));
  ASSERT_TRUE(book.closes_at());
  EXPECT_EQ(book.close().members.size(), 1U);
  (void)book.submit(0, 1, {}, at(2));
  EXPECT_FALSE(book.closes_at());
}

TEST(RoundBook, AQuorumClosesAfterTheGrace) {
  RoundBook book = book_of(4, {.quorum = 0.5, .grace = Seconds(2)});
  (void)book.submit(3, 0, {}, at(1));
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(0, 0, {}, at(5));
  EXPECT_EQ(book.closes_at(), at(7));
  const ClosingRound round = book.close();
  ASSERT_EQ(round.members.size(), 4U);  // the divisor is the members', whoever contributed
  EXPECT_TRUE(round.members[0].has_submitted);
  EXPECT_FALSE(round.members[1].has_submitted);
}

TEST(RoundBook, NobodyThereMeansNothingCloses) {
  RoundBook book = book_of(2);
  (void)book.submit(0, 0, {}, at(1));
  book.leave(0);
  book.leave(1);
  EXPECT_FALSE(book.closes_at());
  book.join(1, 1.0F, 0);
  EXPECT_FALSE(book.closes_at());
  (void)book.submit(1, 0, {}, at(2));
  EXPECT_EQ(book.close().members.size(), 2U);
}

// Whatever comes and goes: each submission that was taken is in exactly one closed round, once.
TEST(RoundBook, LosesNothingAndCountsNothingTwiceThroughRandomComingAndGoing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    RoundBook book({.quorum = seed % 3 == 0 ? 0.5 : 1.0, .grace = Seconds(1)}, 0);
    std::set<std::pair<std::size_t, std::uint64_t>> taken;
    std::set<std::pair<std::size_t, std::uint64_t>> closed;
    for (int event = 0; event < 2000; ++event) {
      const TimePoint now = at(event);
      const std::size_t slot = random() % 5;
      const std::uint64_t step = book.next_step() + random() % 3;
      switch (random() % 12) {
        case 0:
          book.join(slot, 1.0F, step);
          break;
        case 1:
          book.leave(slot);
          break;
        default:
          if (book.submit(slot, step, {}, now) == Taken::kIn) {
            ASSERT_TRUE(taken.emplace(slot, step).second);
          }
      }
      while (book.closes_at() && *book.closes_at() <= now) {
        const ClosingRound round = book.close();
        for (const Entry& entry : round.members) {
          if (!entry.has_submitted) continue;
          ASSERT_TRUE(taken.contains({entry.slot, round.step}));
          ASSERT_TRUE(closed.emplace(entry.slot, round.step).second);
        }
      }
    }
    for (const auto& [slot, step] : taken) {
      if (step < book.next_step()) {
        EXPECT_TRUE(closed.contains({slot, step}));
      }
    }
    EXPECT_GT(closed.size(), 100U);
  }
}

TEST(RoundBook, WithFewerThanTheLeastMembersNoRoundCloses) {
  RoundBook book = book_of(3, {.least = 3});
  for (std::size_t slot = 0; slot < 3; ++slot) (void)book.submit(slot, 0, {}, TimePoint{});
  book.leave(2);
  EXPECT_FALSE(book.closes_at());
  book.join(2, 1, 0);
  EXPECT_TRUE(book.closes_at());
  EXPECT_EQ(book.submit(2, 0, {}, TimePoint{}), Taken::kAlreadyIn);
}

}  // namespace
}  // namespace longhaul
