// Parts of the model that have rounds in the same step: none takes the place of another.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul {
namespace {

using testing::desk_options;
using testing::HubDesk;
using testing::kDeskElements;

constexpr std::size_t kHalf = kDeskElements / 2;

// Two halves of the model, both with a round in every step.
HubOptions two_parts(std::size_t replicas = 2) {
  HubOptions options = desk_options("static", replicas);
  Recipe& recipe = options.training.engine.recipe;
  recipe.local.fragments = 2;
  recipe.plan = {.merge = Merge::kLate};
  return options;
}

ByteBuffer half_payload(float value) {
  Workers workers{1};
  std::vector<float> residual(kHalf);
  const std::vector<float> update(kHalf, value);
  return make_codec(parse_codec("dense/fp32").value(), {{.name = "half", .count = kHalf}}, workers)
      ->take({.residual = residual, .increment = update, .keep_ratio = 1});
}

class HubParts : public ::testing::Test {
 protected:
  void send(const HubDesk::Joined& from, std::uint64_t step, std::uint32_t part, float value) {
    desk_.update(from, step, half_payload(value), 0, {}, part);
  }
  [[nodiscard]] std::vector<RoundId> closed() const {
    std::vector<RoundId> rounds;
    for (std::size_t i = 1; i < desk_.rounds.size(); ++i)
      rounds.push_back(desk_.rounds[i].round.id);
    return rounds;
  }

  HubDesk desk_{two_parts()};
  std::vector<HubDesk::Joined> all_ = desk_.start();
};

TEST_F(HubParts, UpdatesOfOneStepAreMergedEachInItsPart) {
  for (const HubDesk::Joined& replica : all_) {
    send(replica, 0, 0, 0.5F);
    send(replica, 0, 1, 1.0F);
  }
  EXPECT_EQ(closed(), (std::vector<RoundId>{{.step = 0, .part = 0}, {.step = 0, .part = 1}}));
  const std::span<const float> shared = desk_.core.training()->keeper()->model().shared();
  EXPECT_EQ(std::vector<float>(shared.begin(), shared.end()),
            (std::vector<float>{0.5F, 1.5F, 2.0F, 3.0F}));  // desk_model() less what was moved
}

TEST_F(HubParts, CloseInOrderHoweverTheirUpdatesCome) {
  for (const HubDesk::Joined& replica : all_) send(replica, 0, 1, 1.0F);
  EXPECT_TRUE(closed().empty()) << "part 0 comes first";
  EXPECT_EQ(desk_.core.status().step, 0U);
  for (const HubDesk::Joined& replica : all_) send(replica, 0, 0, 1.0F);
  EXPECT_EQ(closed().size(), 2U);
  EXPECT_EQ(desk_.core.status().step, 1U);
}

TEST_F(HubParts, AStepIsOverWhenAllItsRoundsAre) {
  for (const HubDesk::Joined& replica : all_) send(replica, 0, 0, 1.0F);
  EXPECT_EQ(closed().size(), 1U);
  EXPECT_EQ(desk_.core.status().step, 0U);
  EXPECT_EQ(desk_.core.status().next_round, 0U);
}

TEST_F(HubParts, EachMeanIsAnnouncedByItsName) {
  for (const HubDesk::Joined& replica : all_) {
    send(replica, 0, 0, 0.5F);
    send(replica, 0, 1, 1.0F);
  }
  for (std::uint32_t part = 0; part < 2; ++part) {
    const auto closed = all_[0].control.stream->take(Frame::kClosed);
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->closed().step(), 0U);
    EXPECT_EQ(closed->closed().part(), part);
    EXPECT_EQ(closed->closed().elements(), kHalf);
  }
}

// Who comes between the rounds of a step gets the mean that it missed, and takes part in the rest.
TEST_F(HubParts, WhoComesBackBetweenTheRoundsOfAStepIsWaitedForInTheRest) {
  desk_.breaks(all_[0].control);
  send(all_[1], 0, 0, 1.0F);
  ASSERT_EQ(closed().size(), 1U);
  const HubDesk::Joined back = desk_.join(desk_.rejoin_frame("replica-0"));
  EXPECT_TRUE(back.control.stream->take(Frame::kClosed));
  const auto enrolled = back.control.stream->take(Frame::kEnrolled);
  ASSERT_TRUE(enrolled);
  EXPECT_EQ(round_from(enrolled->enrolled().from()), (RoundId{.step = 0, .part = 1}));
  send(all_[1], 0, 1, 1.0F);
  EXPECT_EQ(closed().size(), 1U);
  send(back, 0, 0, 1.0F);  // too late: it goes back
  send(back, 0, 1, 1.0F);
  EXPECT_EQ(closed().size(), 2U);
  EXPECT_EQ(testing::slots_in(desk_.rounds[1]), std::vector<std::size_t>{1});
  EXPECT_EQ(testing::slots_in(desk_.rounds[2]), (std::vector<std::size_t>{0, 1}));
}

TEST_F(HubParts, AnUpdateOfAPartThatIsNotThereEndsTheConnection) {
  send(all_[0], 0, 2, 1.0F);
  EXPECT_EQ(desk_.core.status().rejected, 1U);
  EXPECT_TRUE(all_[0].control.is_gone());
  EXPECT_FALSE(all_[1].control.is_gone());
}

// The journal knows that one round of the step has closed and the other has not.
TEST(HubPartsJournal, AHubThatIsKilledBetweenTheRoundsOfAStepGoesOnThere) {
  HubOptions options = two_parts();
  options.training.directory = testing::test_directory();
  {
    HubDesk desk(options);
    const auto all = desk.start();
    for (const HubDesk::Joined& replica : all)
      desk.update(replica, 0, half_payload(0.5F), 0, {}, 0);
    ASSERT_EQ(desk.core.training()->book().next(), (RoundId{.step = 0, .part = 1}));
  }
  {
    HubDesk desk(options);
    ASSERT_TRUE(desk.core.resume().ok());
    EXPECT_EQ(desk.core.training()->book().next(), (RoundId{.step = 0, .part = 1}));
    std::vector<HubDesk::Joined> all;
    for (const char* name : {"replica-0", "replica-1"})
      all.push_back(desk.join(desk.rejoin_frame(name)));
    EXPECT_EQ(all[0].welcome.contributed().round().step(), 0U);
    for (const HubDesk::Joined& replica : all)
      desk.update(replica, 0, half_payload(1.0F), 0, {}, 1);
    const std::span<const float> shared = desk.core.training()->keeper()->model().shared();
    EXPECT_EQ(std::vector<float>(shared.begin(), shared.end()),
              (std::vector<float>{0.5F, 1.5F, 2.0F, 3.0F}));
  }
  std::filesystem::remove_all(options.training.directory);
}

}  // namespace
}  // namespace longhaul
