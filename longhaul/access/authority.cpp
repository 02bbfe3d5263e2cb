#include "longhaul/access/authority.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "longhaul/access/certificate.h"
#include "longhaul/access/invite.h"
#include "longhaul/access/members.h"
#include "longhaul/access/names.h"
#include "longhaul/access/private_file.h"
#include "longhaul/access/token.h"
#include "longhaul/base/file.h"

namespace longhaul::access {
namespace {

namespace fs = std::filesystem;
using std::chrono::days;

constexpr std::string_view kKeysAreBusy = "another command is changing these keys; try again";
constexpr const char* kCaKey = "ca.key";
constexpr const char* kCaCertificate = "ca.crt";
constexpr const char* kHubKey = "hub.key";
constexpr const char* kHubCertificate = "hub.crt";
constexpr const char* kMembers = "members.json";

constexpr days kHubDays{3650};
// Certificates begin a little in the past: the clocks of distant machines differ.
constexpr std::chrono::hours kClockSlack{1};

bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(fs::symlink_status(path, unreadable));
}

CertificateFacts facts_from(WallTime now, days length, const std::string& common_name) {
  return {.common_name = common_name, .valid_from = now - kClockSlack, .valid_until = now + length};
}

Result<std::vector<std::string>> hub_hosts(const std::vector<std::string>& wanted) {
  std::vector<std::string> hosts;
  for (const std::string& text : wanted) {
    std::string host = LONGHAUL_TRY(normal_host(text));
    hosts.push_back(std::move(host));
  }
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1"});
  std::vector<std::string> unique;
  for (std::string& host : hosts)
    if (std::ranges::find(unique, host) == unique.end()) unique.push_back(std::move(host));
  return unique;
}

// An authority accepts what it signs: `authority` is its own certificate.
Result<TlsKeys> make_root(WallTime now) {
  std::string key = LONGHAUL_TRY(make_key());
  // Authorities have names of their own, so that an error can tell them apart.
  const std::string name = "Longhaul authority " + random_hex(4);
  std::string certificate = LONGHAUL_TRY(sign_root(facts_from(now, kHubDays, name), key));
  return TlsKeys{.authority = certificate, .certificate = certificate, .key = std::move(key)};
}

Result<TlsKeys> make_leaf(const TlsKeys& root, Role role, const CertificateFacts& facts) {
  std::string key = LONGHAUL_TRY(make_key());
  std::string certificate = LONGHAUL_TRY(sign(root, role, facts, key));
  return TlsKeys{
      .authority = root.certificate, .certificate = std::move(certificate), .key = std::move(key)};
}

CertificateFacts hub_facts(std::vector<std::string> hosts, WallTime now) {
  CertificateFacts facts = facts_from(now, kHubDays, "Longhaul hub");
  facts.hosts = std::move(hosts);
  return facts;
}

using NewFiles = std::vector<std::pair<const char*, std::string>>;

// All of them, or none.
Status create_files(const fs::path& directory, const NewFiles& files) {
  for (auto file = files.begin(); file != files.end(); ++file) {
    Status created = create_private_file(directory / file->first, file->second);
    if (created.ok()) continue;
    std::error_code unremovable;
    for (auto done = files.begin(); done != file; ++done)
      fs::remove(directory / done->first, unremovable);
    return created;
  }
  return Done{};
}

Result<std::string> read_part(const fs::path& directory, const char* name) {
  Result<std::string> text = read_private_file(directory / name);
  if (text.ok() || text.error().code != ErrorCode::kNotFound) return text;
  return Error{ErrorCode::kNotFound, directory.string() + ": no " + name +
                                         " here; `longhaul keys init " + directory.string() +
                                         "` makes the keys of a hub"};
}

Result<TlsKeys> read_keys(const fs::path& directory, const char* certificate_name,
                          const char* key_name) {
  std::string key = LONGHAUL_TRY(read_part(directory, key_name));
  std::string certificate = LONGHAUL_TRY(read_file(directory / certificate_name));
  std::string authority = LONGHAUL_TRY(read_file(directory / kCaCertificate));
  return TlsKeys{.authority = std::move(authority),
                 .certificate = std::move(certificate),
                 .key = std::move(key)};
}

// True if the hub's certificate had to be signed anew to name `host`.
Result<bool> ensure_hub_names(const fs::path& directory, const TlsKeys& root,
                              const std::string& host, WallTime now) {
  const TlsKeys hub = LONGHAUL_TRY(read_keys(directory, kHubCertificate, kHubKey));
  Result<CertificateFacts> facts = read_certificate(hub.certificate);
  if (!facts.ok()) return std::move(facts).error().within((directory / kHubCertificate).string());
  if (std::ranges::find(facts->hosts, host) != facts->hosts.end()) return false;
  facts->hosts.push_back(host);
  std::string certificate =
      LONGHAUL_TRY(sign(root, Role::kHub, hub_facts(facts->hosts, now), hub.key));
  StagedFile staged = LONGHAUL_TRY(StagedFile::write(directory / kHubCertificate, certificate));
  LONGHAUL_TRY(std::move(staged).commit());
  return true;
}

// With everything in its normal form.
Result<InviteOptions> checked(InviteOptions request) {
  LONGHAUL_TRY(check_name(request.name));
  Address address = LONGHAUL_TRY(parse_address(request.address));
  request.address = to_text(address);
  if (request.days < 1 || request.days > kMostInviteDays)
    return Error{ErrorCode::kInvalidArgument,
                 "days: expected 1 to 3650, got " + std::to_string(request.days)};
  if (request.file.empty()) request.file = request.name + ".invite";
  if (is_standard_output(request.file))
    return Error{ErrorCode::kInvalidArgument,
                 request.file.string() + ": expected a file, as an invite holds a private key"};
  // One that exists is refused later, unless it is to be replaced.
  fs::path file = LONGHAUL_TRY(
      output_target(request.file, kInviteFormat, request.is_forced || !request.replace));
  request.file = std::move(file);
  return request;
}

Status check_is_new(const fs::path& directory, const InviteOptions& request) {
  const std::vector<Member> members = LONGHAUL_TRY(list_members(directory));
  if (request.replace) return Done{};
  if (std::ranges::find(members, request.name, &Member::name) != members.end())
    return Error{ErrorCode::kMismatch,
                 request.name + " is invited already; --replace makes the earlier invite useless"};
  if (is_there(request.file))
    return Error{ErrorCode::kMismatch,
                 request.file.string() + " exists already; --replace overwrites it"};
  return Done{};
}

// Everything is on disk under other names before the first file changes.
Result<WallTime> write_invite_locked(const OwnedFd& lock, const fs::path& directory,
                                     const TlsKeys& root, const InviteOptions& request,
                                     WallTime now) {
  TlsKeys keys = LONGHAUL_TRY(
      make_leaf(root, Role::kReplica, facts_from(now, days(request.days), request.name)));
  const CertificateFacts facts = LONGHAUL_TRY(read_certificate(keys.certificate));
  const Invite invite{.name = request.name,
                      .address = request.address,
                      .token = random_hex(kSecretBytes),
                      .keys = std::move(keys)};
  StagedFile file = LONGHAUL_TRY(StagedFile::write(request.file, to_text(invite)));
  std::vector<Member> members = LONGHAUL_TRY(list_members(directory));
  std::erase_if(members, [&](const Member& member) { return member.name == request.name; });
  members.push_back({.name = request.name,
                     .token_sha256 = sha256_hex(invite.token),
                     .issued = now,
                     .expires = facts.valid_until});
  std::ranges::sort(members, {}, &Member::name);
  StagedFile list = LONGHAUL_TRY(stage_members_locked(lock, directory, members));
  // The invite's place may be anywhere: if it cannot be put there, an earlier one still holds.
  LONGHAUL_TRY(std::move(file).commit());
  LONGHAUL_TRY(std::move(list).commit());
  return facts.valid_until;
}

}  // namespace

Result<CertificateFacts> create_authority(const fs::path& directory,
                                          const std::vector<std::string>& hosts, WallTime now) {
  std::vector<std::string> names = LONGHAUL_TRY(hub_hosts(hosts));
  LONGHAUL_TRY(make_private_directory(directory));
  (void)LONGHAUL_TRY(lock_directory(directory, kKeysAreBusy));
  for (const char* name : {kCaKey, kCaCertificate, kHubKey, kHubCertificate, kMembers}) {
    if (is_there(directory / name))
      return Error{ErrorCode::kMismatch, directory.string() +
                                             ": holds the keys of a hub already (" + name +
                                             "); new ones would shut its replicas out"};
  }
  const TlsKeys root = LONGHAUL_TRY(make_root(now));
  CertificateFacts facts = hub_facts(names, now);
  const TlsKeys hub = LONGHAUL_TRY(make_leaf(root, Role::kHub, facts));
  LONGHAUL_TRY(create_files(directory, {{kCaKey, root.key},
                                        {kCaCertificate, root.certificate},
                                        {kHubKey, hub.key},
                                        {kHubCertificate, hub.certificate},
                                        {kMembers, to_text(std::vector<Member>{})}}));
  return facts;
}

Result<Invited> invite(const fs::path& directory, const InviteOptions& request, WallTime now) {
  const InviteOptions wanted = LONGHAUL_TRY(checked(request));
  const TlsKeys root = LONGHAUL_TRY(read_keys(directory, kCaCertificate, kCaKey));
  const OwnedFd lock = LONGHAUL_TRY(lock_directory(directory, kKeysAreBusy));
  LONGHAUL_TRY(check_is_new(directory, wanted));
  const std::string host = parse_address(wanted.address).value().host;
  const bool is_host_new = LONGHAUL_TRY(ensure_hub_names(directory, root, host, now));
  const WallTime expires = LONGHAUL_TRY(write_invite_locked(lock, directory, root, wanted, now));
  return Invited{.file = wanted.file,
                 .address = wanted.address,
                 .expires = expires,
                 .is_host_new = is_host_new};
}

Result<WallTime> revoke(const fs::path& directory, const std::string& name, WallTime now) {
  LONGHAUL_TRY(check_name(name));
  const OwnedFd lock = LONGHAUL_TRY(lock_directory(directory, kKeysAreBusy));
  std::vector<Member> members = LONGHAUL_TRY(list_members(directory));
  const auto member = std::ranges::find(members, name, &Member::name);
  if (member == members.end())
    return Error{ErrorCode::kNotFound, name + " is not invited; `longhaul keys list " +
                                           directory.string() + "` shows who is"};
  if (member->revoked) return *member->revoked;
  member->revoked = now;
  StagedFile list = LONGHAUL_TRY(stage_members_locked(lock, directory, members));
  LONGHAUL_TRY(std::move(list).commit());
  return now;
}

Result<TlsKeys> load_hub_keys(const fs::path& directory, WallTime now) {
  TlsKeys keys = LONGHAUL_TRY(read_keys(directory, kHubCertificate, kHubKey));
  Status valid = check_keys(keys, Role::kHub, now);
  if (!valid.ok()) return std::move(valid).error().within((directory / kHubCertificate).string());
  return keys;
}

}  // namespace longhaul::access
