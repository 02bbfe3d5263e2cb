#include "longhaul/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <variant>

namespace longhaul {
namespace {

Result<int> half_of(int value) {
  if (value % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd"};
  return value / 2;
}

TEST(Result, HoldsAValue) {
  const Result<int> result = half_of(8);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 4);
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, HoldsAnError) {
  const Result<int> result = half_of(7);
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error(), (Error{ErrorCode::kInvalidArgument, "odd"}));
}

TEST(Result, MovesWhatItHoldsOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 3);
  Result<std::unique_ptr<int>> failed = Error{ErrorCode::kIo, "disk"};
  const Error error = std::move(failed).error();
  EXPECT_EQ(error.message, "disk");
}

TEST(Result, GivesAccessToMembers) {
  Result<std::string> result = std::string("abc");
  EXPECT_EQ(result->size(), 3U);
  result->push_back('d');
  EXPECT_EQ(*result, "abcd");
}

TEST(Result, AskedForTheSideThatIsNotThereThrows) {
  EXPECT_THROW((void)half_of(7).value(), std::bad_variant_access);
  EXPECT_THROW((void)half_of(8).error(), std::bad_variant_access);
}

TEST(Status, IsAResultOfNothing) {
  const Status status = Done{};
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(*status, Done{});
}

TEST(Error, TellsWhatWasBeingDone) {
  const Error error =
      Error{ErrorCode::kCorruptPayload, "bad magic"}.within("header").within("replica 2, round 7");
  EXPECT_EQ(error.code, ErrorCode::kCorruptPayload);
  EXPECT_EQ(error.message, "replica 2, round 7: header: bad magic");
}

TEST(ErrorCode, HasANameOfItsOwnForEachCode) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kIo); ++code)
    names.insert(name_of(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kIo) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

Result<int> halved(int number) {
  if (number % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd"};
  return number / 2;
}

Result<std::unique_ptr<int>> quartered(int number) {
  const int half = LONGHAUL_TRY(halved(number));
  return std::make_unique<int>(LONGHAUL_TRY(halved(half)));
}

Status check_quarter(int number) {
  const std::unique_ptr<int> quarter = LONGHAUL_TRY(quartered(number));
  if (*quarter == 0) return Error{ErrorCode::kMismatch, "zero"};
  return Done{};
}

TEST(Try, TakesTheValueOrReturnsTheError) {
  EXPECT_EQ(*quartered(12).value(), 3);
  EXPECT_EQ(quartered(6).error().message, "odd");
  EXPECT_EQ(quartered(7).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(check_quarter(4).ok());
  EXPECT_EQ(check_quarter(0).error().message, "zero");
  EXPECT_EQ(check_quarter(5).error().message, "odd");
}

}  // namespace
}  // namespace longhaul
