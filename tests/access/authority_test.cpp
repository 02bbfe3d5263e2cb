#include "longhaul/access/authority.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "longhaul/access/members.h"
#include "tests/access/access_directory.h"

namespace longhaul::access {
namespace {

namespace fs = std::filesystem;
using std::chrono::days;
using testing::ElementsAre;
using testing::HasSubstr;

using Authority = AccessTest;

std::string content(const fs::path& file) {
  std::ifstream in(file);
  return (std::ostringstream() << in.rdbuf()).str();
}

std::vector<std::string> names_in(const fs::path& hub) {
  std::vector<std::string> names;
  for (const Member& member : list_members(hub).value()) names.push_back(member.name);
  return names;
}

std::string admission(const fs::path& hub, const std::string& name, const std::string& token,
                      WallTime now) {
  const Status admitted = check_member(list_members(hub).value(), name, token, now);
  return admitted.ok() ? "ok" : admitted.error().message;
}

TEST_F(Authority, KeepsItsFilesToItself) {
  const fs::path keys = hub("hub");
  EXPECT_EQ(mode_of(keys), 0700U);
  for (const char* name : {"ca.key", "ca.crt", "hub.key", "hub.crt", "members.json"})
    EXPECT_EQ(mode_of(keys / name), 0600U) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(keys), {}), 5);
}

TEST_F(Authority, IsMadeOnce) {
  const fs::path keys = hub("hub");
  const std::string before = content(keys / "ca.key");
  const Result<CertificateFacts> again = create_authority(keys, {}, kToday);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("already"));
  EXPECT_EQ(content(keys / "ca.key"), before);
  // Also where only a part is left.
  for (const char* name : {"ca.key", "ca.crt", "hub.key", "hub.crt"}) fs::remove(keys / name);
  EXPECT_FALSE(create_authority(keys, {}, kToday).ok());
}

TEST_F(Authority, GivesTheHubWhatATlsServerNeeds) {
  const fs::path keys = hub("hub");
  fs::remove(keys / "ca.key");  // kept elsewhere
  const Result<TlsKeys> loaded = load_hub_keys(keys, kToday + days(3649));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(check_keys(*loaded, Role::kHub, kToday).ok());
  EXPECT_THAT(read_certificate(loaded->certificate)->hosts,
              ElementsAre("hub.example.org", "192.0.2.7", "localhost", "127.0.0.1"));
  EXPECT_EQ(load_hub_keys(keys, kToday + days(3651)).error().code, ErrorCode::kDeadline);
}

TEST_F(Authority, RefusesKeysThatOthersCanRead) {
  const fs::path keys = hub("hub");
  fs::permissions(keys / "hub.key", fs::perms{0640});
  EXPECT_THAT(load_hub_keys(keys, kToday).error().message, HasSubstr("chmod 600"));
  fs::permissions(keys / "hub.key", fs::perms{0600});
  fs::permissions(keys / "ca.key", fs::perms{0604});
  EXPECT_THAT(invite(keys, request("berlin"), kToday).error().message, HasSubstr("chmod 600"));
}

TEST_F(Authority, RefusesFilesOfAnotherHub) {
  const fs::path keys = hub("hub");
  const fs::path other = hub("other");
  fs::copy_file(other / "ca.crt", keys / "ca.crt", fs::copy_options::overwrite_existing);
  EXPECT_EQ(load_hub_keys(keys, kToday).error().code, ErrorCode::kMismatch);
  EXPECT_THAT(invite(keys, request("berlin"), kToday).error().message,
              HasSubstr("do not belong together"));
  EXPECT_TRUE(names_in(keys).empty());
}

TEST_F(Authority, AdmitsWhomItInvited) {
  const fs::path keys = hub("hub");
  const Invite berlin = invited(keys, "berlin");
  const Invite oslo = invited(keys, "oslo");
  EXPECT_EQ(admission(keys, "berlin", berlin.token, kToday), "ok");
  EXPECT_EQ(admission(keys, "berlin", oslo.token, kToday), "wrong token");
  EXPECT_EQ(admission(keys, "berlin", "", kToday), "wrong token");
  EXPECT_EQ(admission(keys, "paris", berlin.token, kToday), "unknown name");
  EXPECT_THAT(content(keys / "members.json"), testing::Not(HasSubstr(berlin.token)));
  EXPECT_THAT(names_in(keys), ElementsAre("berlin", "oslo"));
}

TEST_F(Authority, RevocationHoldsForTheNextJoin) {
  const fs::path keys = hub("hub");
  const Invite berlin = invited(keys, "berlin");
  EXPECT_EQ(admission(keys, "berlin", berlin.token, kToday), "ok");
  EXPECT_EQ(revoke(keys, "berlin", kToday).value(), kToday);
  EXPECT_EQ(admission(keys, "berlin", berlin.token, kToday), "revoked");
  EXPECT_EQ(revoke(keys, "berlin", kToday + days(1)).value(), kToday) << "since the first time";
  EXPECT_EQ(revoke(keys, "oslo", kToday).error().code, ErrorCode::kNotFound);
}

TEST_F(Authority, AnInviteThatHasExpiredIsRefusedWhateverTlsHasSeen) {
  const fs::path keys = hub("hub");
  InviteOptions wanted = request("berlin");
  wanted.days = 1;
  ASSERT_TRUE(invite(keys, wanted, kToday).ok());
  const Invite berlin = read_invite(wanted.file, kToday).value();
  EXPECT_EQ(admission(keys, "berlin", berlin.token, kToday + days(1)), "ok");
  EXPECT_EQ(admission(keys, "berlin", berlin.token, kToday + days(2)), "its invite has expired");
}

TEST_F(Authority, InvitesANameAgainOnlyWhenTold) {
  const fs::path keys = hub("hub");
  const Invite first = invited(keys, "berlin");
  InviteOptions again = request("berlin");
  again.file = directory_ / "again.invite";
  EXPECT_THAT(invite(keys, again, kToday).error().message, HasSubstr("--replace"));
  EXPECT_FALSE(fs::exists(again.file));
  ASSERT_TRUE(revoke(keys, "berlin", kToday).ok());
  again.replace = true;
  ASSERT_TRUE(invite(keys, again, kToday).ok());
  const Invite second = read_invite(again.file, kToday).value();
  EXPECT_EQ(admission(keys, "berlin", first.token, kToday), "wrong token");
  EXPECT_EQ(admission(keys, "berlin", second.token, kToday), "ok");
}

TEST_F(Authority, DoesNotOverwriteAFileUnasked) {
  const fs::path keys = hub("hub");
  std::ofstream(directory_ / "berlin.invite") << "mine";
  EXPECT_THAT(invite(keys, request("berlin"), kToday).error().message, HasSubstr("exists already"));
  EXPECT_EQ(content(directory_ / "berlin.invite"), "mine");
  EXPECT_TRUE(names_in(keys).empty());
}

TEST_F(Authority, ReplacesInvitesAndNotWhatElseLiesThere) {
  const fs::path keys = hub("hub");
  std::ofstream(directory_ / "berlin.invite") << "mine";
  InviteOptions again = request("berlin");
  again.replace = true;
  EXPECT_THAT(invite(keys, again, kToday).error().message, HasSubstr("--force"));
  EXPECT_EQ(content(directory_ / "berlin.invite"), "mine");
  EXPECT_TRUE(names_in(keys).empty());
  again.is_forced = true;
  EXPECT_TRUE(invite(keys, again, kToday).ok());
  again.is_forced = false;
  EXPECT_TRUE(invite(keys, again, kToday).ok());
}

TEST_F(Authority, WritesInvitesToFilesOnlyAndFollowsLinks) {
  const fs::path keys = hub("hub");
  InviteOptions wanted = request("berlin");
  wanted.is_forced = wanted.replace = true;
  for (const char* place : {"/dev/full", "/dev/stdout", "-"}) {
    wanted.file = place;
    EXPECT_THAT(invite(keys, wanted, kToday).error().message, HasSubstr("expected a file"));
  }
  wanted.file = directory_ / "link";
  fs::create_symlink("target", wanted.file);
  ASSERT_TRUE(invite(keys, wanted, kToday).ok());
  EXPECT_TRUE(fs::is_symlink(wanted.file));
  EXPECT_TRUE(read_invite(directory_ / "target", kToday).ok());
}

TEST_F(Authority, AFailedInviteInvitesNobody) {
  const fs::path keys = hub("hub");
  InviteOptions wanted = request("berlin");
  wanted.file = directory_ / "none" / "berlin.invite";
  EXPECT_FALSE(invite(keys, wanted, kToday).ok());
  wanted.file = directory_;
  EXPECT_EQ(invite(keys, wanted, kToday).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(names_in(keys).empty());
}

TEST_F(Authority, InvitesLastAsLongAsAsked) {
  const fs::path keys = hub("hub");
  InviteOptions wanted = request("berlin");
  EXPECT_EQ(invite(keys, wanted, kToday)->expires, kToday + days(365));
  wanted = request("oslo");
  wanted.days = 30;
  EXPECT_EQ(invite(keys, wanted, kToday)->expires, kToday + days(30));
  wanted = request("paris");
  wanted.days = 3650;
  EXPECT_EQ(invite(keys, wanted, kToday + days(10))->expires, kToday + days(3650))
      << "not longer than the authority";
  for (const int wrong : {0, -1, 3651}) {
    wanted.days = wrong;
    EXPECT_EQ(invite(keys, wanted, kToday).error().code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(Authority, AddsANewHostToTheHubsCertificateAndKeepsItsKey) {
  const fs::path keys = hub("hub");
  const TlsKeys before = load_hub_keys(keys, kToday).value();
  EXPECT_FALSE(invite(keys, request("berlin"), kToday)->is_host_new);
  InviteOptions wanted = request("oslo");
  wanted.address = "[2001:DB8::7]:4242";
  const Result<Invited> invited = invite(keys, wanted, kToday);
  ASSERT_TRUE(invited.ok());
  EXPECT_TRUE(invited->is_host_new);
  EXPECT_EQ(invited->address, "[2001:db8::7]:4242");
  const TlsKeys after = load_hub_keys(keys, kToday).value();
  EXPECT_EQ(after.key, before.key);
  EXPECT_EQ(read_certificate(after.certificate)->hosts.back(), "2001:db8::7");
  EXPECT_EQ(mode_of(keys / "hub.crt"), 0600U);
}

TEST_F(Authority, ADamagedListAdmitsNobody) {
  const fs::path keys = hub("hub");
  const Invite berlin = invited(keys, "berlin");
  std::ofstream(keys / "members.json") << content(keys / "members.json").substr(0, 100);
  const auto refused = list_members(keys);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("members.json: damaged"));
  fs::remove(keys / "members.json");
  EXPECT_EQ(list_members(keys).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace longhaul::access
