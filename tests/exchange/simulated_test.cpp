// The simulated exchange against arrival times worked out by hand.
#include "longhaul/exchange/simulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"
#include "tests/codec/checked.h"
#include "tests/codec/test_data.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kElements = 17;  // dense, in fp32:
constexpr std::size_t kBytes = 100;    // header of 32, 17 values of 4
static_assert(kBytes == kPayloadHeaderBytes + 4 * kElements);

RateTrace rate(double bytes_per_second) {
  return RateTrace::constant({.bytes_per_second = bytes_per_second});
}

SimulatedPeer peer(double up, double down, double latency_s, float weight = 1.0F) {
  return {.link = {.up = rate(up), .down = rate(down), .latency = Seconds(latency_s)},
          .weight = weight};
}

Update dense_update(RoundId round, float value) {
  return {.round = round,
          .elements = kElements,
          .payload = testing_data::dense(std::vector<float>(kElements, value))};
}

Update empty_update(RoundId round) { return {.round = round, .elements = kElements}; }

// Two replicas: 0 is near and quick, 1 is far and slow.
class Simulated : public ::testing::Test {
 protected:
  Result<Mean> collect(std::size_t replica, RoundId round) {
    return network_.exchange(replica).collect(round, Deadline::max());
  }
  double now(std::size_t replica) { return network_.now(replica).count(); }

  Workers workers_;
  SimulatedNetwork network_{{peer(100, 50, 0.25), peer(20, 25, 2)}, workers_};
};

TEST_F(Simulated, ARoundClosesAtTheLastArrivalAndComesBackOverEachLink) {
  network_.advance(0, Seconds(1));
  network_.advance(1, Seconds(1.5));
  network_.exchange(0).submit(dense_update({.step = 0}, 2));
  network_.exchange(1).submit(dense_update({.step = 0}, 4));
  ASSERT_TRUE(network_.settle().ok());
  const Result<Mean> near = collect(0, {.step = 0});
  const Result<Mean> far = collect(1, {.step = 0});
  ASSERT_TRUE(near.ok());
  ASSERT_TRUE(far.ok());
  EXPECT_EQ(near->to_vector(), std::vector<float>(kElements, 3.0F));
  EXPECT_EQ(far->to_vector(), near->to_vector());
  // Up: 1 + 100/100 + 0.25 = 2.25 and 1.5 + 100/20 + 2 = 8.5, which closes the round.
  EXPECT_DOUBLE_EQ(now(0), 8.5 + 2 + 0.25);
  EXPECT_DOUBLE_EQ(now(1), 8.5 + 4 + 2);
}

TEST_F(Simulated, TheLastArrivalMayBeAnyReplicas) {
  network_.exchange(1).submit(dense_update({.step = 0}, 1));  // there at 7
  network_.advance(0, Seconds(20));
  network_.exchange(0).submit(dense_update({.step = 0}, 1));  // there at 21.25
  ASSERT_TRUE(network_.settle().ok());
  ASSERT_TRUE(collect(1, {.step = 0}).ok());
  EXPECT_DOUBLE_EQ(now(1), 21.25 + 4 + 2);
}

TEST_F(Simulated, RoundsQueueForTheLineAndNotForEachOthersArrival) {
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (std::size_t replica : {0U, 1U}) {
      network_.exchange(replica).submit(dense_update({.step = step}, 1));
    }
    ASSERT_TRUE(network_.settle().ok());
  }
  // Replica 1 sends from 0 to 5 and from 5 to 10: rounds close at 7 and 12.
  ASSERT_TRUE(collect(1, {.step = 0}).ok());
  EXPECT_DOUBLE_EQ(now(1), 7 + 4 + 2);
  ASSERT_TRUE(collect(1, {.step = 1}).ok());
  EXPECT_DOUBLE_EQ(now(1), 12 + 4 + 2);
}

TEST_F(Simulated, DownloadsQueueForTheLine) {
  SimulatedNetwork network({peer(1000, 10, 0), peer(1000, 1000, 0)}, workers_);
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (std::size_t replica : {0U, 1U})
      network.exchange(replica).submit(dense_update({.step = step}, 1));
  }
  ASSERT_TRUE(network.settle().ok());
  // Rounds close at 0.1 and 0.2; replica 0 receives from 0.1 to 10.1 and on to 20.1.
  ASSERT_TRUE(network.exchange(0).collect({.step = 0}, Deadline::max()).ok());
  EXPECT_DOUBLE_EQ(network.now(0).count(), 10.1);
  ASSERT_TRUE(network.exchange(0).collect({.step = 1}, Deadline::max()).ok());
  EXPECT_DOUBLE_EQ(network.now(0).count(), 20.1);
}

TEST_F(Simulated, CollectingWhatIsLongThereTakesNoTime) {
  for (std::size_t replica : {0U, 1U})
    network_.exchange(replica).submit(dense_update({.step = 0}, 1));
  ASSERT_TRUE(network_.settle().ok());
  network_.advance(0, Seconds(1000));
  ASSERT_TRUE(collect(0, {.step = 0}).ok());
  EXPECT_DOUBLE_EQ(now(0), 1000);
}

TEST_F(Simulated, CollectingBeforeARoundHasClosedIsAnError) {
  network_.exchange(0).submit(dense_update({.step = 3}, 1));
  EXPECT_FALSE(collect(0, {.step = 3}).ok());
  ASSERT_TRUE(network_.settle().ok());  // replica 1 has not submitted
  const Result<Mean> early = collect(0, {.step = 3});
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, ErrorCode::kDeadline);
  EXPECT_THAT(early.error().message, HasSubstr("step 3"));
  EXPECT_DOUBLE_EQ(now(0), 0);
  network_.exchange(1).submit(dense_update({.step = 3}, 1));
  ASSERT_TRUE(network_.settle().ok());
  EXPECT_TRUE(collect(0, {.step = 3}).ok());
  EXPECT_FALSE(collect(0, {.step = 3}).ok()) << "a mean is handed out once";
}

TEST_F(Simulated, AnEmptyUpdateTakesTheLatencyOnlyAndStillCounts) {
  network_.exchange(0).submit(dense_update({.step = 0}, 8));
  network_.exchange(1).submit(empty_update({.step = 0}));
  ASSERT_TRUE(network_.settle().ok());
  const Result<Mean> mean = collect(0, {.step = 0});
  ASSERT_TRUE(mean.ok());
  EXPECT_EQ(mean->to_vector(), std::vector<float>(kElements, 4.0F));
  // The round closes at 2 (latency of replica 1). Replica 0 has all there is; 1 gets 0's payload.
  EXPECT_DOUBLE_EQ(now(0), 2 + 0.25);
  ASSERT_TRUE(collect(1, {.step = 0}).ok());
  EXPECT_DOUBLE_EQ(now(1), 2 + 4 + 2);
  EXPECT_EQ(network_.bytes_up(), kBytes);
  EXPECT_EQ(network_.bytes_down(), kBytes);
}

TEST_F(Simulated, ASparseMeanIsOnePayloadThatAllShare) {
  constexpr std::size_t kMany = 70'000;
  for (std::size_t replica : {0U, 1U}) {
    std::vector<float> update = testing_data::normal_update(kMany, replica);
    ByteBuffer bytes = make_codec(parse_codec("top_k/bf16").value(), {}, workers_)
                           ->take({.residual = update, .keep_ratio = 0.01});
    network_.exchange(replica).submit({.round = {.step = 0},
                                       .elements = kMany,
                                       .payload = testing_data::checked(std::move(bytes), kMany)});
  }
  ASSERT_TRUE(network_.settle().ok());
  const Result<Mean> near = collect(0, {.step = 0});
  const Result<Mean> far = collect(1, {.step = 0});
  ASSERT_TRUE(near.ok() && far.ok() && near->is_sparse());
  ASSERT_EQ(near->terms.size(), 1U);
  EXPECT_EQ(near->terms[0].payload.bytes(), far->terms[0].payload.bytes());
}

TEST_F(Simulated, WeightsAreThePeers) {
  SimulatedNetwork network({peer(1, 1, 0, 3.0F), peer(1, 1, 0, 1.0F)}, workers_);
  network.exchange(0).submit(dense_update({.step = 0}, 4));
  network.exchange(1).submit(dense_update({.step = 0}, 8));
  ASSERT_TRUE(network.settle().ok());
  EXPECT_EQ(network.exchange(1).collect({.step = 0}, Deadline::max())->to_vector(),
            std::vector<float>(kElements, 5.0F));
}

TEST_F(Simulated, EveryTransferIsObservedAndCounted) {
  std::vector<Transfer> seen;
  network_.on_transfer([&](const Transfer& transfer) { seen.push_back(transfer); });
  for (std::size_t replica : {0U, 1U})
    network_.exchange(replica).submit(dense_update({.step = 5, .part = 2}, 1));
  ASSERT_TRUE(network_.settle().ok());
  ASSERT_EQ(seen.size(), 4U);
  const auto row = [](const Transfer& t) {
    return std::tuple(t.replica, t.is_up, t.begin.count(), t.end.count(), t.bytes);
  };
  EXPECT_EQ(row(seen[0]), std::tuple(0U, true, 0.0, 1.25, kBytes));
  EXPECT_EQ(row(seen[1]), std::tuple(1U, true, 0.0, 7.0, kBytes));
  EXPECT_EQ(row(seen[2]), std::tuple(0U, false, 7.0, 9.25, kBytes));
  EXPECT_EQ(row(seen[3]), std::tuple(1U, false, 7.0, 13.0, kBytes));
  for (const Transfer& transfer : seen) EXPECT_EQ(transfer.round, (RoundId{.step = 5, .part = 2}));
  EXPECT_EQ(network_.bytes_up(), 2 * kBytes);
  EXPECT_EQ(network_.bytes_down(), 2 * kBytes);
}

TEST_F(Simulated, WhoSubmitsFirstDoesNotMatter) {
  const auto run = [&](const std::vector<std::size_t>& order) {
    SimulatedNetwork network({peer(90, 40, 0.3), peer(20, 25, 2), peer(55, 5, 1)}, workers_);
    std::vector<double> outcome;
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (const std::size_t replica : order) {
        network.advance(replica, Seconds(0.5 + 0.25 * static_cast<double>(replica)));
        network.exchange(replica).submit(
            dense_update({.step = step}, 0.1F * static_cast<float>(replica + step)));
      }
      EXPECT_TRUE(network.settle().ok());
      for (const std::size_t replica : order) {
        const auto mean = network.exchange(replica).collect({.step = step}, Deadline::max());
        EXPECT_TRUE(mean.ok());
        outcome.push_back(mean->to_vector().front());
      }
    }
    for (std::size_t replica = 0; replica < 3; ++replica)
      outcome.push_back(network.now(replica).count());
    return outcome;
  };
  EXPECT_EQ(run({0, 1, 2}), run({2, 0, 1}));
}

TEST_F(Simulated, AnUpdateOfAnotherSizeIsAnError) {
  network_.exchange(0).submit(dense_update({.step = 7}, 1));
  Update longer = dense_update({.step = 7}, 1);
  longer.payload = testing_data::dense(std::vector<float>(kElements + 1));
  network_.exchange(1).submit(std::move(longer));
  const Status settled = network_.settle();
  ASSERT_FALSE(settled.ok());
  EXPECT_THAT(settled.error().message, HasSubstr("replica 1: round 7"));
}

TEST_F(Simulated, SubmittingTwiceToARoundIsABug) {
  network_.exchange(0).submit(dense_update({.step = 0}, 1));
  network_.exchange(0).submit(dense_update({.step = 0}, 1));
  EXPECT_THROW((void)network_.settle(), std::logic_error);
}

}  // namespace
}  // namespace longhaul
