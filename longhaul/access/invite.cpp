#include "longhaul/access/invite.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "longhaul/access/names.h"
#include "longhaul/access/private_file.h"
#include "longhaul/access/token.h"

namespace longhaul::access {
namespace {

using InviteJson = nlohmann::ordered_json;

constexpr int kInviteVersion = 1;
constexpr std::size_t kMostInviteBytes = std::size_t{64} << 10U;

// The fields of an invite by their keys.
using InviteField = std::pair<const char*, std::string& (*)(Invite&)>;
constexpr std::array<InviteField, 6> kInviteFields{{
    {"name", [](Invite& invite) -> std::string& { return invite.name; }},
    {"address", [](Invite& invite) -> std::string& { return invite.address; }},
    {"token", [](Invite& invite) -> std::string& { return invite.token; }},
    {"ca_certificate", [](Invite& invite) -> std::string& { return invite.keys.authority; }},
    {"certificate", [](Invite& invite) -> std::string& { return invite.keys.certificate; }},
    {"key", [](Invite& invite) -> std::string& { return invite.keys.key; }},
}};

// Against damage, not against forgers: who can write an invite can also write its digest. Without
// it one changed digit would be another token or another address.
std::string digest_of(Invite invite) {
  std::string all;
  for (const auto& [key, field] : kInviteFields) all += field(invite) + '\0';
  return sha256_hex(all);
}

Error no_invite(const std::string& why) {
  return Error{ErrorCode::kCorruptPayload, "invite: " + why};
}

Result<std::string> text_field(const InviteJson& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return no_invite(std::string(key) + " is missing");
  if (!found->is_string()) return no_invite(std::string(key) + ": expected a text");
  return found->get<std::string>();
}

Status check_head(const InviteJson& json) {
  if (!json.is_object() || json.value("format", InviteJson()) != kInviteFormat)
    return no_invite("this is not an invite (longhaul keys invite makes one)");
  const InviteJson version = json.value("version", InviteJson());
  if (version == kInviteVersion) return Done{};
  return no_invite("version " + version.dump(-1, ' ', true).substr(0, 20) +
                   ", but this program reads version " + std::to_string(kInviteVersion));
}

Result<Invite> fields_of(const InviteJson& json) {
  LONGHAUL_TRY(check_head(json));
  Invite invite;
  for (const auto& [key, field] : kInviteFields) {
    std::string text = LONGHAUL_TRY(text_field(json, key));
    field(invite) = std::move(text);
  }
  std::string digest = LONGHAUL_TRY(text_field(json, "sha256"));
  if (json.size() != kInviteFields.size() + 3) return no_invite("it has fields that do not belong");
  if (digest != digest_of(invite)) return no_invite("damaged: its digest does not fit");
  return invite;
}

Error of_name(const Invite& invite, Error cause) {
  return std::move(cause).within("invite for " + invite.name);
}

Status check_certificates(const Invite& invite, WallTime now) {
  const Result<CertificateFacts> facts = read_certificate(invite.keys.certificate);
  if (!facts.ok()) return of_name(invite, Error(facts.error()).within("certificate"));
  if (facts->common_name != invite.name)
    return of_name(invite, {ErrorCode::kMismatch, "its certificate is for another name"});
  Status valid = check_keys(invite.keys, Role::kReplica, now);
  if (valid.ok()) return valid;
  if (now > facts->valid_until)
    return of_name(invite, {ErrorCode::kDeadline, "it expired on " + to_text(facts->valid_until) +
                                                      "; ask for a new one"});
  return of_name(invite, std::move(valid).error().within("certificate"));
}

}  // namespace

std::string to_text(const Invite& invite) {
  Invite fields = invite;
  InviteJson json{{"format", kInviteFormat}, {"version", kInviteVersion}};
  for (const auto& [key, field] : kInviteFields) json[key] = field(fields);
  json["sha256"] = digest_of(invite);
  return json.dump(2) + '\n';
}

Result<Invite> parse_invite(std::string_view text, WallTime now) {
  if (text.size() > kMostInviteBytes) return no_invite("over 64 KiB, far too long");
  Invite invite = LONGHAUL_TRY(fields_of(InviteJson::parse(text, nullptr, false)));
  if (Status name = check_name(invite.name); !name.ok())
    return no_invite("name: " + name.error().message);
  const Result<Address> address = parse_address(invite.address);
  if (!address.ok()) return of_name(invite, Error(address.error()).within("address"));
  if (!is_hex(invite.token, kSecretBytes))
    return of_name(invite, {ErrorCode::kCorruptPayload, "token: expected 64 hex digits"});
  LONGHAUL_TRY(check_certificates(invite, now));
  return invite;
}

Result<Invite> read_invite(const std::filesystem::path& file, WallTime now) {
  std::string text = LONGHAUL_TRY(read_private_file(file));
  Result<Invite> invite = parse_invite(text, now);
  if (!invite.ok()) return std::move(invite).error().within(file.string());
  return invite;
}

}  // namespace longhaul::access
