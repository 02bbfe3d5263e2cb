#include "longhaul/hub/training.h"

#include <gtest/gtest.h>

#include "longhaul/codec/codec.h"
#include "tests/codec/checked.h"

namespace longhaul {
namespace {

constexpr std::size_t kTrainedElements = 10'000;

void close_next(Training& training) {
  const Result<RoundOutcome> closed = training.keeper()->close(training.begin_closing(), {});
  ASSERT_TRUE(closed.ok());
  training.end_closing(*closed);
}

// A round of three replicas that sent what the codec makes of it.
const ClosingRound* sent_after_a_round(Training& training, const std::string& codec, double keep) {
  Workers workers{1};
  const LayerTable layers{{.name = "all", .count = kTrainedElements}};
  const RoundId round = training.book().next();
  for (std::size_t slot = 0; slot < 3; ++slot) {
    training.book().join(slot, 1.0F, round);
    std::vector<float> residual(kTrainedElements);
    std::vector<float> gradient(kTrainedElements);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      gradient[i] = static_cast<float>((i * (slot + 3)) % 101);
    ByteBuffer payload =
        make_codec(parse_codec(codec).value(), layers, workers)
            ->take({.residual = residual, .increment = gradient, .keep_ratio = keep});
    EXPECT_EQ(
        training.book().submit(
            slot, round, testing_data::checked(std::move(payload), kTrainedElements), TimePoint{}),
        SubmitOutcome::kIn);
  }
  close_next(training);
  return training.sent(round);
}

std::unique_ptr<Training> training_of_three(Workers& workers) {
  return std::make_unique<Training>(
      ModelKeeper::start(
          {.engine = {.recipe = find_recipe("d-sgd").value(), .lr = {.peak = 0.1, .steps = 10}},
           .replicas = 3},
          std::vector<float>(kTrainedElements), {}, workers)
          .value());
}

TEST(Training, HoldsPayloadsOnlyWhereSomeoneIsBetterOffWithThem) {
  Workers workers{1};
  const auto training = training_of_three(workers);
  EXPECT_EQ(sent_after_a_round(*training, "dense/fp32", 1), nullptr);
  const ClosingRound* sent = sent_after_a_round(*training, "top_k/bf16", 0.01);
  ASSERT_NE(sent, nullptr);
  ASSERT_EQ(sent->members.size(), 3U);
  for (const Contribution& one : sent->members) EXPECT_FALSE(one.payload.empty());
}

TEST(Training, LetsPayloadsGoAfterAFewRounds) {
  Workers workers{1};
  const auto training = training_of_three(workers);
  ASSERT_NE(sent_after_a_round(*training, "top_k/bf16", 0.01), nullptr);
  for (int i = 0; i < 8; ++i) (void)sent_after_a_round(*training, "dense/fp32", 1);
  EXPECT_EQ(training->sent({}), nullptr);
}

TEST(JournalOptions, AFewModelsAreEnoughAtHand) {
  const JournalOptions limits;
  EXPECT_EQ(limits_for_model(limits, 250'000, 1).bytes, std::size_t{16} << 20) << "at least";
  EXPECT_EQ(limits_for_model(limits, 1'000'000, 1).bytes, 64'000'000U);
  EXPECT_EQ(limits_for_model(limits, 25'000'000, 1).bytes, limits.bytes);
  EXPECT_EQ(limits_for_model({.bytes = 1000}, 25'000'000, 1).bytes, 1000U);
  EXPECT_EQ(limits_for_model(limits, 250'000, 3).rounds, 3 * limits.rounds) << "of each part";
}

TEST(Training, HoldsAFewModelsOfMeansAtHand) {
  constexpr std::size_t kLargeElements = 1'100'000;
  Workers workers{1};
  const auto training = std::make_unique<Training>(
      ModelKeeper::start(
          {.engine = {.recipe = find_recipe("d-sgd").value(), .lr = {.peak = 0.1, .steps = 10}}},
          std::vector<float>(kLargeElements), {}, workers)
          .value());
  training->book().join(0, 1.0F, {});
  std::vector<float> residual(kLargeElements);
  const CheckedPayload payload = testing_data::dense(residual);
  for (std::uint64_t step = 0; step < 20; ++step) {
    (void)training->book().submit(0, {.step = step}, payload, TimePoint{});
    close_next(*training);
  }
  EXPECT_EQ(training->journal().rounds(), 15U) << "16 models, less the headers of payloads";
}

}  // namespace
}  // namespace longhaul
