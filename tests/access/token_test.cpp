#include "longhaul/access/token.h"

#include <gtest/gtest.h>

#include "longhaul/access/wall_time.h"

namespace longhaul::access {
namespace {

TEST(Token, Has256BitsThatDifferEveryTime) {
  const std::string first = random_hex(kSecretBytes);
  EXPECT_TRUE(is_hex(first, kSecretBytes));
  EXPECT_NE(first, random_hex(kSecretBytes));
}

TEST(Token, DigestIsSha256) {
  // The example of FIPS 180.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Token, HexIsLowerCaseAndOfTheWantedLength) {
  EXPECT_TRUE(is_hex("00ff", 2));
  for (const char* text : {"", "00f", "00fff", "00FF", "00fg", "0 ff"})
    EXPECT_FALSE(is_hex(text, 2));
}

TEST(Token, EqualMeansEveryByteAndTheLength) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  for (const char* other : {"", "ab", "abcd", "abd", "bbc"})
    EXPECT_FALSE(equal_in_constant_time("abc", other)) << other;
}

TEST(WallTime, IsReadAndWrittenBack) {
  const WallTime time{std::chrono::seconds(1'800'000'000)};
  EXPECT_EQ(to_text(time), "2027-01-15T08:00:00Z");
  EXPECT_EQ(parse_wall_time("2027-01-15T08:00:00Z").value(), time);
}

TEST(WallTime, OneFormOnly) {
  for (const char* text :
       {"", "2027-01-15", "2027-01-15T08:00:00", "2027-01-15 08:00:00Z", "2027-02-30T08:00:00Z",
        "2027-1-15T08:00:00Z", "2027-01-15T08:00:00Zx", " 2027-01-15T08:00:00Z"})
    EXPECT_FALSE(parse_wall_time(text).ok()) << text;
}

}  // namespace
}  // namespace longhaul::access
