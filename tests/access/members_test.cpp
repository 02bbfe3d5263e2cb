#include "longhaul/access/members.h"

#include <gtest/gtest.h>

#include "longhaul/access/token.h"

namespace longhaul::access {
namespace {

const std::vector<Member>& some_members() {
  static const std::vector<Member> kMembers{{.name = "berlin",
                                             .token_sha256 = sha256_hex("token"),
                                             .issued = WallTime{std::chrono::seconds(1'000'000)},
                                             .expires = WallTime{std::chrono::seconds(2'000'000)}},
                                            {.name = "oslo",
                                             .token_sha256 = sha256_hex("another"),
                                             .issued = WallTime{std::chrono::seconds(1'500'000)},
                                             .expires = WallTime{std::chrono::seconds(2'500'000)},
                                             .revoked = WallTime{std::chrono::seconds(1'600'000)}}};
  return kMembers;
}

TEST(MembersText, IsReadBackSortedByName) {
  EXPECT_EQ(parse_members(to_text(some_members())).value(), some_members());
  const std::vector<Member> turned{some_members()[1], some_members()[0]};
  EXPECT_EQ(parse_members(to_text(turned)).value(), some_members());
  EXPECT_TRUE(parse_members(to_text(std::vector<Member>{})).value().empty());
}

TEST(MembersText, EveryPrefixIsRefused) {
  const std::string text = to_text(some_members());
  for (std::size_t length = 0; length + 2 <= text.size(); ++length)
    ASSERT_FALSE(parse_members(std::string_view(text).substr(0, length)).ok()) << length;
}

TEST(MembersText, ANameIsThereOnce) {
  const std::vector<Member> twice{some_members()[0], some_members()[1], some_members()[0]};
  EXPECT_FALSE(parse_members(to_text(twice)).ok());
}

// Above all: a list that lost the word "revoked" does not let anyone in again.
TEST(MembersText, EveryFieldIsNeeded) {
  const std::string text = to_text(some_members());
  for (const char* key :
       {"format", "version", "members", "name", "token_sha256", "issued", "expires", "revoked"}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      std::string damaged = text;
      damaged[at] = 'X';
      EXPECT_FALSE(parse_members(damaged).ok()) << damaged;
    }
  }
}

TEST(MembersText, StrangeValuesAreRefused) {
  std::vector<Member> strange = some_members();
  strange[0].name = "../etc";
  EXPECT_FALSE(parse_members(to_text(strange)).ok());
  strange = some_members();
  strange[0].token_sha256 = "token";
  EXPECT_FALSE(parse_members(to_text(strange)).ok());
  for (const char* text : {"", "[]", "null", "{}", R"({"format":"longhaul members"})",
                           R"({"format":"longhaul members","version":1,"members":[7]})",
                           R"({"format":"longhaul members","version":2,"members":[]})"})
    EXPECT_FALSE(parse_members(text).ok()) << text;
}

}  // namespace
}  // namespace longhaul::access
