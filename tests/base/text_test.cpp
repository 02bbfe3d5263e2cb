#include "longhaul/base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kCommands{"plan", "lab", "hub", "status", "rehearse", "recipes"};

TEST(SplitList, TrimsThePartsAndKeepsWhatIsInside) {
  EXPECT_THAT(split_list("a,b:c=1,d"), ElementsAre("a", "b:c=1", "d"));
  EXPECT_THAT(split_list(" a , b c,\td "), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(split_list("a,,b"), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_list(""), IsEmpty());
  EXPECT_EQ(joined({"a", "b"}), "a, b");
}

TEST(EditDistance, CountsSwapsOfNeighboursOnce) {
  EXPECT_EQ(edit_distance("lab", "lab"), 0U);
  EXPECT_EQ(edit_distance("lap", "lab"), 1U);
  EXPECT_EQ(edit_distance("stpes", "steps"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearestName, FindsSlipsOtherCasesAndBeginnings) {
  EXPECT_EQ(nearest_name("lap", kCommands), "lab");
  EXPECT_EQ(nearest_name("LAB", kCommands), "lab");
  EXPECT_EQ(nearest_name("rehears", kCommands), "rehearse");
  EXPECT_EQ(nearest_name("stat", kCommands), "status");  // far, but only one begins so
  EXPECT_EQ(nearest_name("recipies", kCommands), "recipes");
}

TEST(NearestName, DoesNotGuess) {
  EXPECT_EQ(nearest_name("magic", kCommands), "");
  EXPECT_EQ(nearest_name("", kCommands), "");
  EXPECT_EQ(nearest_name("re", kCommands), "");  // two begin so
  EXPECT_EQ(nearest_name(std::string(100'000, 'a'), kCommands), "");
  EXPECT_EQ(nearest_name("lab", {}), "");
}

TEST(DidYouMean, IsTheEndOfAMessageOrNothing) {
  EXPECT_EQ(did_you_mean("lap", kCommands), "; did you mean lab?");
  EXPECT_EQ(did_you_mean("magic", kCommands), "");
}

}  // namespace
}  // namespace longhaul
