#include "longhaul/base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace longhaul {
namespace {

using testing::HasSubstr;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST(Check, PassesSilentlyWhenTheClaimHolds) {
  LONGHAUL_CHECK(1 + 1 == 2);
  LONGHAUL_CHECK_EQ(2, 2);
  LONGHAUL_CHECK_NE(1, 2);
  LONGHAUL_CHECK_LT(1, 2);
  LONGHAUL_CHECK_LE(2, 2);
  LONGHAUL_CHECK_GT(2, 1);
  LONGHAUL_CHECK_GE(2, 2);
}

TEST(Check, NamesPlaceAndClaim) {
  const std::string message = message_of([] { LONGHAUL_CHECK(1 > 2); });
  EXPECT_THAT(message, HasSubstr("check_test.cpp:"));
  EXPECT_THAT(message, HasSubstr("check failed: 1 > 2"));
}

TEST(Check, NamesBothOperands) {
  const int layer = -3;
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_GE(layer, 0); }),
              HasSubstr("layer >= 0 (-3 against 0)"));
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_EQ(layer, 5); }),
              HasSubstr("layer == 5 (-3 against 5)"));
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_NE(layer, -3); }),
              HasSubstr("layer != -3 (-3 against -3)"));
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_GT(layer, 0); }), HasSubstr("layer > 0"));
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_LT(0, layer); }), HasSubstr("0 < layer"));
  EXPECT_THAT(message_of([=] { LONGHAUL_CHECK_LE(0, layer); }), HasSubstr("0 <= layer"));
}

TEST(Check, EvaluatesItsOperandsOnce) {
  int calls = 0;
  LONGHAUL_CHECK_EQ(++calls, 1);
  EXPECT_EQ(calls, 1);
}

TEST(Check, IsOneStatement) {
  bool reached = false;
  if (reached)
    LONGHAUL_CHECK(false);
  else
    reached = true;
  EXPECT_TRUE(reached);
}

}  // namespace
}  // namespace longhaul
