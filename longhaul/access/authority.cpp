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

Validity validity_from(WallTime now, days length) {
  return {.from = now - kClockSlack, .until = now + length};
}

Result<std::vector<std::string>> hub_hosts(const std::vector<std::string>& wanted) {
  std::vector<std::string> hosts;
  for (const std::string& text : wanted) {
    Result<std::string> host = normal_host(text);
    if (!host.ok()) return std::move(host).error();
    hosts.push_back(std::move(host).value());
  }
  hosts.insert(hosts.end(), {"localhost", "127.0.0.1"});
  std::vector<std::string> unique;
  for (std::string& host : hosts)
    if (std::ranges::find(unique, host) == unique.end()) unique.push_back(std::move(host));
  return unique;
}

Result<Identity> make_root_identity(WallTime now) {
  Result<std::string> key = make_key();
  if (!key.ok()) return std::move(key).error();
  // Authorities have names of their own, so that an error can tell them apart.
  Result<std::string> certificate =
      sign_root(*key, "Longhaul authority " + random_hex(4), validity_from(now, kHubDays));
  if (!certificate.ok()) return std::move(certificate).error();
  return Identity{.certificate_pem = std::move(certificate).value(),
                  .key_pem = std::move(key).value()};
}

Result<Identity> make_leaf(const Identity& root, const CertificateRequest& request) {
  Result<std::string> key = make_key();
  if (!key.ok()) return std::move(key).error();
  Result<std::string> certificate = sign(root, request, *key);
  if (!certificate.ok()) return std::move(certificate).error();
  return Identity{.certificate_pem = std::move(certificate).value(),
                  .key_pem = std::move(key).value()};
}

CertificateRequest hub_request(std::vector<std::string> hosts, WallTime now) {
  return {.role = Role::kHub,
          .common_name = "Longhaul hub",
          .hosts = std::move(hosts),
          .validity = validity_from(now, kHubDays)};
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

// The public part and a private one.
Result<Identity> read_identity(const fs::path& directory, const char* certificate_name,
                               const char* key_name) {
  Result<std::string> key = read_part(directory, key_name);
  if (!key.ok()) return std::move(key).error();
  Result<std::string> certificate = read_file(directory / certificate_name);
  if (!certificate.ok()) return std::move(certificate).error();
  return Identity{.certificate_pem = std::move(certificate).value(),
                  .key_pem = std::move(key).value()};
}

// True if the hub's certificate had to be signed anew to name `host`.
Result<bool> ensure_hub_names(const fs::path& directory, const Identity& root,
                              const std::string& host, WallTime now) {
  Result<Identity> hub = read_identity(directory, kHubCertificate, kHubKey);
  if (!hub.ok()) return std::move(hub).error();
  Result<CertificateFacts> facts = read_certificate(hub->certificate_pem);
  if (!facts.ok()) return std::move(facts).error().within((directory / kHubCertificate).string());
  if (std::ranges::find(facts->hosts, host) != facts->hosts.end()) return false;
  facts->hosts.push_back(host);
  Result<std::string> certificate = sign(root, hub_request(facts->hosts, now), hub->key_pem);
  if (!certificate.ok()) return std::move(certificate).error();
  Result<StagedFile> staged = StagedFile::write(directory / kHubCertificate, *certificate);
  if (!staged.ok()) return std::move(staged).error();
  if (Status moved = std::move(*staged).commit(); !moved.ok()) return std::move(moved).error();
  return true;
}

struct Guests {
  DirectoryLock lock;
  std::vector<Member> members;
};

Result<Guests> open_guests(const fs::path& directory) {
  Result<DirectoryLock> lock = DirectoryLock::take(directory, kKeysAreBusy);
  if (!lock.ok()) return std::move(lock).error();
  Result<std::vector<Member>> members = Members(directory).list();
  if (!members.ok()) return std::move(members).error();
  return Guests{.lock = std::move(lock).value(), .members = std::move(members).value()};
}

// With everything in its normal form.
Result<InviteRequest> checked(InviteRequest request) {
  if (Status name = check_name(request.name); !name.ok()) return std::move(name).error();
  Result<Address> address = parse_address(request.address);
  if (!address.ok()) return std::move(address).error();
  request.address = to_text(*address);
  if (request.days < 1 || request.days > kMostInviteDays)
    return Error{ErrorCode::kInvalidArgument,
                 "days: expected 1 to 3650, got " + std::to_string(request.days)};
  if (request.file.empty()) request.file = request.name + ".invite";
  if (is_standard_output(request.file))
    return Error{ErrorCode::kInvalidArgument,
                 request.file.string() + ": expected a file, as an invite holds a private key"};
  // One that exists is refused later, unless it is to be replaced.
  Result<fs::path> file = output_target(
      request.file, {.mark = kInviteFormat, .is_forced = request.is_forced || !request.replace});
  if (!file.ok()) return std::move(file).error();
  request.file = std::move(file).value();
  return request;
}

Status check_is_new(const InviteRequest& request, const std::vector<Member>& members) {
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
Result<WallTime> write_invite(const fs::path& directory, Guests& guests, const Identity& root,
                              const InviteRequest& request, WallTime now) {
  Result<Identity> identity = make_leaf(root, {.role = Role::kReplica,
                                               .common_name = request.name,
                                               .validity = validity_from(now, days(request.days))});
  if (!identity.ok()) return std::move(identity).error();
  const Result<CertificateFacts> facts = read_certificate(identity->certificate_pem);
  if (!facts.ok()) return facts.error();
  const Invite invite{.name = request.name,
                      .address = request.address,
                      .token = random_hex(kSecretBytes),
                      .ca_pem = root.certificate_pem,
                      .identity = std::move(identity).value()};
  Result<StagedFile> file = StagedFile::write(request.file, to_text(invite));
  if (!file.ok()) return std::move(file).error();
  std::erase_if(guests.members, [&](const Member& member) { return member.name == request.name; });
  guests.members.push_back({.name = request.name,
                            .token_sha256 = sha256_hex(invite.token),
                            .issued = now,
                            .expires = facts->validity.until});
  std::ranges::sort(guests.members, {}, &Member::name);
  Result<StagedFile> list = Members(directory).stage_locked(guests.lock, guests.members);
  if (!list.ok()) return std::move(list).error();
  // The invite's place may be anywhere: if it cannot be put there, an earlier one still holds.
  if (Status placed = std::move(*file).commit(); !placed.ok()) return std::move(placed).error();
  if (Status saved = std::move(*list).commit(); !saved.ok()) return std::move(saved).error();
  return facts->validity.until;
}

}  // namespace

Result<AuthorityFacts> create_authority(const fs::path& directory,
                                        const std::vector<std::string>& hosts, WallTime now) {
  Result<std::vector<std::string>> names = hub_hosts(hosts);
  if (!names.ok()) return std::move(names).error();
  if (Status made = make_private_directory(directory); !made.ok()) return std::move(made).error();
  Result<DirectoryLock> lock = DirectoryLock::take(directory, kKeysAreBusy);
  if (!lock.ok()) return std::move(lock).error();
  for (const char* name : {kCaKey, kCaCertificate, kHubKey, kHubCertificate, kMembers}) {
    if (is_there(directory / name))
      return Error{ErrorCode::kMismatch, directory.string() +
                                             ": holds the keys of a hub already (" + name +
                                             "); new ones would shut its replicas out"};
  }
  Result<Identity> root = make_root_identity(now);
  if (!root.ok()) return std::move(root).error();
  Result<Identity> hub = make_leaf(*root, hub_request(*names, now));
  if (!hub.ok()) return std::move(hub).error();
  Status created = create_files(directory, {{kCaKey, root->key_pem},
                                            {kCaCertificate, root->certificate_pem},
                                            {kHubKey, hub->key_pem},
                                            {kHubCertificate, hub->certificate_pem},
                                            {kMembers, to_text(std::vector<Member>{})}});
  if (!created.ok()) return std::move(created).error();
  return AuthorityFacts{.hosts = std::move(names).value(), .expires = now + kHubDays};
}

Result<Invited> invite(const fs::path& directory, const InviteRequest& request, WallTime now) {
  const Result<InviteRequest> wanted = checked(request);
  if (!wanted.ok()) return wanted.error();
  Result<Identity> root = read_identity(directory, kCaCertificate, kCaKey);
  if (!root.ok()) return std::move(root).error();
  Result<Guests> guests = open_guests(directory);
  if (!guests.ok()) return std::move(guests).error();
  if (Status fresh = check_is_new(*wanted, guests->members); !fresh.ok())
    return std::move(fresh).error();
  const std::string host = parse_address(wanted->address).value().host;
  const Result<bool> is_host_new = ensure_hub_names(directory, *root, host, now);
  if (!is_host_new.ok()) return is_host_new.error();
  const Result<WallTime> expires = write_invite(directory, *guests, *root, *wanted, now);
  if (!expires.ok()) return expires.error();
  return Invited{.file = wanted->file,
                 .address = wanted->address,
                 .expires = *expires,
                 .is_host_new = *is_host_new};
}

Result<WallTime> revoke(const fs::path& directory, const std::string& name, WallTime now) {
  if (Status valid = check_name(name); !valid.ok()) return std::move(valid).error();
  Result<Guests> guests = open_guests(directory);
  if (!guests.ok()) return std::move(guests).error();
  const auto member = std::ranges::find(guests->members, name, &Member::name);
  if (member == guests->members.end())
    return Error{ErrorCode::kNotFound, name + " is not invited; `longhaul keys list " +
                                           directory.string() + "` shows who is"};
  if (member->revoked) return *member->revoked;
  member->revoked = now;
  Status saved = Members(directory).save_locked(guests->lock, guests->members);
  if (!saved.ok()) return std::move(saved).error();
  return now;
}

Result<HubKeys> load_hub_keys(const fs::path& directory, WallTime now) {
  Result<Identity> hub = read_identity(directory, kHubCertificate, kHubKey);
  if (!hub.ok()) return std::move(hub).error();
  Result<std::string> ca = read_file(directory / kCaCertificate);
  if (!ca.ok()) return std::move(ca).error();
  Status valid = check_identity(*ca, *hub, Role::kHub, now);
  if (!valid.ok()) return std::move(valid).error().within((directory / kHubCertificate).string());
  return HubKeys{.ca_pem = std::move(ca).value(),
                 .certificate_pem = std::move(hub->certificate_pem),
                 .key_pem = std::move(hub->key_pem)};
}

}  // namespace longhaul::access
