#include "trainer/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace longhaul::trainer {
namespace {

std::vector<std::uint8_t> ten_labels(std::size_t count) {
  std::vector<std::uint8_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) labels[i] = static_cast<std::uint8_t>(i * 7 % 10);
  return labels;
}

void expect_every_sample_once(const Shares& shares, std::size_t samples) {
  std::vector<int> used(samples);
  for (const auto& share : shares) {
    for (const std::uint32_t sample : share) ++used.at(sample);
  }
  EXPECT_EQ(std::ranges::count(used, 1), static_cast<std::ptrdiff_t>(samples));
}

std::size_t labels_in(const std::vector<std::uint32_t>& share,
                      const std::vector<std::uint8_t>& labels) {
  std::set<std::uint8_t> seen;
  for (const std::uint32_t sample : share) seen.insert(labels[sample]);
  return seen.size();
}

// The share of a replica's most frequent label, averaged over replicas: 0.1 for equal mixtures, 1
// for one label each.
double skew(const Shares& shares, const std::vector<std::uint8_t>& labels) {
  double sum = 0;
  for (const auto& share : shares) {
    std::array<double, 10> counts{};
    for (const std::uint32_t sample : share) ++counts[labels[sample]];
    sum += *std::ranges::max_element(counts) / static_cast<double>(share.size());
  }
  return sum / static_cast<double>(shares.size());
}

class SplitKinds : public testing::TestWithParam<const char*> {};

TEST_P(SplitKinds, UseEverySampleOnceInSharesOfNearlyEqualSize) {
  for (const std::size_t samples : {100U, 1003U}) {
    for (const std::size_t replicas : {1U, 4U, 7U}) {
      const auto shares = split(ten_labels(samples), replicas, {.split = GetParam()}, 5);
      ASSERT_TRUE(shares.ok()) << shares.error().message;
      ASSERT_EQ(shares->size(), replicas);
      expect_every_sample_once(*shares, samples);
      const auto [least, most] =
          std::ranges::minmax_element(*shares, {}, [](const auto& share) { return share.size(); });
      EXPECT_LE(most->size() - least->size(), GetParam() == std::string("shards") ? 2U : 1U);
    }
  }
}

TEST_P(SplitKinds, DependOnTheSeedAlone) {
  const auto labels = ten_labels(1000);
  const DataOptions options{.split = GetParam()};
  EXPECT_EQ(*split(labels, 4, options, 5), *split(labels, 4, options, 5));
  EXPECT_NE(*split(labels, 4, options, 5), *split(labels, 4, options, 6));
}

TEST_P(SplitKinds, RefuseMoreReplicasThanSamples) {
  EXPECT_FALSE(split(ten_labels(3), 4, {.split = GetParam()}, 1).ok());
  EXPECT_FALSE(split(ten_labels(3), 0, {.split = GetParam()}, 1).ok());
}

INSTANTIATE_TEST_SUITE_P(Split, SplitKinds, testing::Values("iid", "shards", "dirichlet"));

TEST(Split, IidSharesHoldAllLabelsAboutEquallyOften) {
  const auto labels = ten_labels(4000);
  EXPECT_LT(skew(*split_iid(labels.size(), 4, 1), labels), 0.14);
}

TEST(Split, ShardsHoldFewLabels) {
  const auto labels = ten_labels(1000);
  const auto shares = split_shards(labels, 5, 2, 1);
  for (const auto& share : *shares) EXPECT_LE(labels_in(share, labels), 2U);
}

TEST(Split, SmallerBetaIsMoreUnequal) {
  const auto labels = ten_labels(4000);
  const auto skew_of = [&](double beta) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      sum += skew(*split_dirichlet(labels, 4, beta, seed), labels);
    }
    return sum / 10;
  };
  EXPECT_GT(skew_of(0.1), skew_of(0.5) + 0.05);
  EXPECT_GT(skew_of(0.5), skew_of(100) + 0.05);
  EXPECT_LT(skew_of(1000), 0.14);
}

TEST(Split, RefusesBetaAndShardsThatMeanNothing) {
  const auto labels = ten_labels(100);
  for (const double beta : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(split_dirichlet(labels, 4, beta, 1).ok());
  }
  for (const std::size_t shards :
       {std::size_t{0}, std::size_t{26}, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_FALSE(split_shards(labels, 4, shards, 1).ok());
  }
}

// With a beta this small the draws underflow to zero for most labels.
TEST(Split, SurvivesATinyBeta) {
  const auto shares = split_dirichlet(ten_labels(500), 8, 1e-9, 1);
  ASSERT_TRUE(shares.ok());
  expect_every_sample_once(*shares, 500);
}

TEST(Split, IsChosenByName) {
  const auto labels = ten_labels(1000);
  EXPECT_EQ(*split(labels, 4, {.split = "iid"}, 1), *split_iid(labels.size(), 4, 1));
  EXPECT_EQ(*split(labels, 4, {.split = "shards"}, 1), *split_shards(labels, 4, 2, 1));
  EXPECT_EQ(*split(labels, 4, {.split = "dirichlet", .dirichlet = 0.1}, 1),
            *split_dirichlet(labels, 4, 0.1, 1));
  EXPECT_EQ(split(labels, 4, {.split = "dirichlett"}, 1).error().message,
            "split: expected iid, shards or dirichlet, got \"dirichlett\"");
}

}  // namespace
}  // namespace longhaul::trainer
