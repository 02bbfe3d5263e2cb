#include "longhaul/access/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::access {
namespace {

using testing::HasSubstr;

TEST(Names, AreShortAndPlain) {
  for (const char* name : {"berlin", "a", "A.b_c-9", "_x"}) EXPECT_TRUE(check_name(name).ok());
  EXPECT_TRUE(check_name(std::string(64, 'x')).ok());
  for (const char* name : {"", "..", ".hidden", "-rf", "a/b", "a b", "a\nb", "ä", "a,b", "a:b"})
    EXPECT_FALSE(check_name(name).ok()) << name;
  EXPECT_FALSE(check_name(std::string(65, 'x')).ok());
  EXPECT_FALSE(check_name(std::string("a\0b", 3)).ok());
}

TEST(Names, ARefusalSaysWhatWasGotOnOneLine) {
  const Status refused = check_name("a\nb");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("got a?b"));
}

TEST(Hosts, HaveOneForm) {
  EXPECT_EQ(normal_host("Hub.Example.ORG").value(), "hub.example.org");
  EXPECT_EQ(normal_host("192.0.2.7").value(), "192.0.2.7");
  EXPECT_EQ(normal_host("2001:DB8:0:0::7").value(), "2001:db8::7");
  EXPECT_TRUE(is_ip("::1"));
  EXPECT_FALSE(is_ip("localhost"));
}

TEST(Hosts, NonsenseIsRefused) {
  for (const char* host : {"", "10.0.0.256", "1.2.3", "a..b", ".a", "a.", "-a", "a-",
                           "*.example.org", "a b", "a,DNS:b", "a/b", "::g", "42"})
    EXPECT_FALSE(normal_host(host).ok()) << host;
  EXPECT_FALSE(normal_host(std::string(64, 'a') + ".org").ok());
  EXPECT_FALSE(normal_host(std::string("127.0.0.1\0x", 11)).ok());
}

TEST(Addresses, AreReadAndWrittenBack) {
  for (const char* text : {"hub.example.org:4242", "127.0.0.1:1", "[2001:db8::7]:65535"}) {
    const Result<Address> address = parse_address(text);
    ASSERT_TRUE(address.ok()) << address.error().message;
    EXPECT_EQ(to_text(*address), text);
  }
  EXPECT_EQ(parse_address("HUB:80").value(), (Address{.host = "hub", .port = 80}));
}

TEST(Addresses, OfThisMachineAreLoopback) {
  for (const char* text :
       {"localhost:80", "LocalHost:80", "127.0.0.1:80", "127.1.2.3:80", "[::1]:80"})
    EXPECT_TRUE(is_loopback(parse_address(text).value())) << text;
  for (const char* text : {"hub.example.org:80", "10.127.0.1:80", "[2001:db8::1]:80"})
    EXPECT_FALSE(is_loopback(parse_address(text).value())) << text;
}

TEST(Addresses, NonsenseIsRefused) {
  for (const char* text : {"", ":", "hub", "hub:", ":80", "hub:0", "hub:65536", "hub:-1", "hub:+1",
                           "hub:080", "hub:8a", "hub: 80", "2001:db8::7:80", "[hub]:80", "[]:80",
                           "[::1]", "[::1:80", "http://hub:80", "hub:80:90"})
    EXPECT_FALSE(parse_address(text).ok()) << text;
}

}  // namespace
}  // namespace longhaul::access
