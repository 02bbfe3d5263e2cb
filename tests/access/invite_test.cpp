#include "longhaul/access/invite.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <random>

#include "longhaul/access/token.h"
#include "tests/access/access_directory.h"

namespace longhaul::access {
namespace {

using std::chrono::days;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

// Made in memory: a disk takes its time.
Invite fresh_invite(const std::string& name) {
  CertificateFacts facts{
      .common_name = "authority", .valid_from = kToday, .valid_until = kToday + days(365)};
  const std::string root_key = make_key().value();
  const std::string root = sign_root(facts, root_key).value();
  const TlsKeys root_keys{.authority = root, .certificate = root, .key = root_key};
  const std::string key = make_key().value();
  facts.common_name = name;
  return {.name = name,
          .address = "hub.example.org:4242",
          .token = random_hex(kSecretBytes),
          .keys = {.authority = root,
                   .certificate = sign(root_keys, Role::kReplica, facts, key).value(),
                   .key = key}};
}

class InviteText : public testing::Test {
 protected:
  // The digest is right.
  [[nodiscard]] Error refusal_of(const Invite& changed) const {
    const Result<Invite> parsed = parse_invite(to_text(changed), kToday);
    EXPECT_FALSE(parsed.ok());
    return parsed.ok() ? Error{} : parsed.error();
  }
  [[nodiscard]] std::string refusal_of(const Json& json) const {
    const Result<Invite> parsed = parse_invite(json.dump(), kToday);
    return parsed.ok() ? "no refusal" : parsed.error().message;
  }
  // What is damaged is an error, or it was of no consequence.
  void expect_harmless(const std::string& damaged) const {
    const Result<Invite> parsed = parse_invite(damaged, kToday);
    EXPECT_TRUE(!parsed.ok() || *parsed == invite_) << damaged;
  }

  const Invite invite_ = fresh_invite("berlin");
  const std::string text_ = to_text(invite_);
};

TEST_F(InviteText, IsReadBack) {
  const Result<Invite> parsed = parse_invite(text_, kToday);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, invite_);
  EXPECT_EQ(parsed->name, "berlin");
  EXPECT_EQ(parsed->address, "hub.example.org:4242");
}

TEST_F(InviteText, EveryPrefixIsRefused) {
  // Without the last brace; the line end after it is of no consequence.
  for (std::size_t length = 0; length + 2 <= text_.size(); ++length)
    ASSERT_FALSE(parse_invite(std::string_view(text_).substr(0, length), kToday).ok()) << length;
}

TEST_F(InviteText, EveryFlippedBitIsNoticed) {
  for (std::size_t place = 0; place < text_.size(); ++place) {
    std::string damaged = text_;
    damaged[place] = static_cast<char>(damaged[place] ^ (1 << (place % 8)));
    expect_harmless(damaged);
  }
}

TEST_F(InviteText, RandomDamageIsNoticed) {
  std::mt19937 random(7);
  const auto below = [&random](std::size_t end) { return random() % end; };
  for (int trial = 0; trial < 1000; ++trial) {
    std::string damaged = text_;
    for (std::size_t left = 1 + below(4); left > 0; --left) {
      const std::size_t place = below(damaged.size());
      switch (below(3)) {
        case 0:
          damaged[place] = static_cast<char>(below(256));
          break;
        case 1:
          damaged.erase(place, 1 + below(8));
          break;
        default:
          damaged.insert(place, damaged.substr(below(damaged.size()), below(40)));
      }
    }
    expect_harmless(damaged);
  }
}

TEST_F(InviteText, OtherTextIsNoInvite) {
  for (const char* text : {"", "x", "[]", "null", "3", "\"longhaul invite\"", "{}",
                           R"({"format":"longhaul members"})", R"({"format":7})"}) {
    const Result<Invite> parsed = parse_invite(text, kToday);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("not an invite"));
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorruptPayload);
  }
  EXPECT_FALSE(parse_invite(std::string(60'000, '['), kToday).ok());
  EXPECT_FALSE(parse_invite(std::string(30'000, '[') + std::string(30'000, ']'), kToday).ok());
  EXPECT_FALSE(parse_invite(std::string(100'000, ' ') + text_, kToday).ok());
}

TEST_F(InviteText, MissingAndStrangeFieldsAreNamed) {
  for (const char* key :
       {"name", "address", "token", "ca_certificate", "certificate", "key", "sha256"}) {
    Json json = Json::parse(text_);
    json.erase(key);
    EXPECT_THAT(refusal_of(json), HasSubstr(std::string(key) + " is missing"));
    json[key] = 7;
    EXPECT_THAT(refusal_of(json), HasSubstr(std::string(key) + ": expected a text"));
  }
  Json json = Json::parse(text_);
  json["more"] = "x";
  EXPECT_THAT(refusal_of(json), HasSubstr("do not belong"));
  json = Json::parse(text_);
  json["version"] = 2;
  EXPECT_THAT(refusal_of(json), HasSubstr("version 2, but this program reads version 1"));
}

TEST_F(InviteText, AnExpiredOneSaysWhen) {
  EXPECT_TRUE(parse_invite(text_, kToday + days(364)).ok());
  const Result<Invite> late = parse_invite(text_, kToday + days(366));
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().code, ErrorCode::kDeadline);
  EXPECT_EQ(late.error().message,
            "invite for berlin: it expired on 2027-07-01T00:00:00Z; ask for a new one");
}

TEST_F(InviteText, PartsThatDoNotBelongTogetherAreRefused) {
  const Invite other = fresh_invite("berlin");
  Invite changed = invite_;
  changed.name = "oslo";
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("another name"));
  changed = invite_;
  changed.keys.authority = other.keys.authority;
  EXPECT_EQ(refusal_of(changed).code, ErrorCode::kMismatch);
  changed = invite_;
  changed.keys.key = other.keys.key;
  EXPECT_EQ(refusal_of(changed).code, ErrorCode::kMismatch);
  changed = invite_;
  changed.keys.certificate += other.keys.certificate;
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("more than one"));
}

TEST_F(InviteText, FieldsThatAreWellDigestedButNonsenseAreRefused) {
  Invite changed = invite_;
  changed.name = "../etc";
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("name: expected"));
  changed = invite_;
  changed.address = "hub.example.org";
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("address: expected HOST:PORT"));
  changed = invite_;
  changed.token.pop_back();
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("token: expected 64 hex digits"));
  changed = invite_;
  changed.keys.authority = "x";
  EXPECT_THAT(refusal_of(changed).message, HasSubstr("authority: not a PEM certificate"));
}

// Past the digest: what OpenSSL makes of damaged certificates and keys.
TEST_F(InviteText, DamagedPemIsRefused) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 90; ++trial) {
    Invite changed = invite_;
    std::string& pem = trial % 3 == 0   ? changed.keys.authority
                       : trial % 3 == 1 ? changed.keys.certificate
                                        : changed.keys.key;
    // The numbers of a key begin there; a version before them is of no consequence to OpenSSL.
    const std::size_t begin = trial % 3 == 2 ? 76 : 0;
    pem[begin + random() % (pem.size() - begin)] = static_cast<char>(' ' + random() % 95);
    EXPECT_TRUE(!parse_invite(to_text(changed), kToday).ok() || changed == invite_) << pem;
  }
}

using InviteFile = AccessTest;

TEST_F(InviteFile, ThatOthersCanReadIsRefused) {
  EXPECT_EQ(invited(hub("hub"), "berlin").name, "berlin");
  const std::filesystem::path file = directory_ / "berlin.invite";
  EXPECT_EQ(mode_of(file), 0600U);
  std::filesystem::permissions(file, std::filesystem::perms{0644});
  EXPECT_THAT(read_invite(file, kToday).error().message, HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace longhaul::access
