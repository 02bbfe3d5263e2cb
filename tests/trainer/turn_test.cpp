// The headers of a collective, and the silence of a rank.
#include "trainer/turn.h"

#include <gtest/gtest.h>

#include <limits>

#include "trainer/heartbeats.h"

namespace longhaul::trainer {
namespace {

TEST(TurnBytes, ComeBackAsTheyWere) {
  const Turn turn{.round = {.step = 7, .part = 3},
                  .elements = 100,
                  .bytes = 41,
                  .kept = 5,
                  .clock = Seconds(1.5),
                  .computing = Seconds(0.25),
                  .header_time = Seconds(0.125),
                  .payload_time = Seconds(2),
                  .payload_bytes = 64};
  const ByteBuffer bytes = to_bytes(turn);
  const Result<Turn> again = turn_from_bytes(bytes);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->round, turn.round);
  EXPECT_EQ(to_bytes(*again), bytes);
}

TEST(TurnBytes, OfAnotherSizeVersionOrTimeAreRefused) {
  const ByteBuffer good = to_bytes(Turn{});
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(turn_from_bytes(ByteView(good).first(size)).ok());
  for (const std::size_t at : {0U, 4U}) {  // magic, version
    ByteBuffer bad = good;
    bad[at] ^= std::byte{1};
    EXPECT_FALSE(turn_from_bytes(bad).ok());
  }
  for (const double time :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(turn_from_bytes(to_bytes(Turn{.payload_time = Seconds(time)})).ok());
}

TEST(HeartbeatsOfRanks, NameTheRankThatWasSilentFirst) {
  const auto at = [](double time_s) { return time_after(TimePoint{}, Seconds(time_s)); };
  Heartbeats beats(3, at(0));
  for (int i = 1; i <= 4; ++i)
    for (const std::size_t rank : {0U, 1U, 2U}) beats.note(rank, i, at(i));
  beats.note(0, 5, at(5));
  beats.note(1, 5, at(5));
  beats.note(2, 4, at(5));  // no new beat
  EXPECT_FALSE(beats.silent(at(10)).has_value());
  EXPECT_EQ(beats.silent(at(10.5)), 2U);
  EXPECT_EQ(beats.silent(at(60)), 2U);
}

}  // namespace
}  // namespace longhaul::trainer
