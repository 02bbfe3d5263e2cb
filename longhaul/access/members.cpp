#include "longhaul/access/members.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "longhaul/access/names.h"
#include "longhaul/access/token.h"

namespace longhaul::access {
namespace {

using MembersJson = nlohmann::ordered_json;

constexpr std::string_view kMembersFormat = "longhaul members";
constexpr int kMembersVersion = 1;

std::filesystem::path file_in(const std::filesystem::path& directory) {
  return directory / "members.json";
}

Error damaged(const std::string& why) {
  return Error{ErrorCode::kCorruptPayload, "damaged: " + why};
}

std::string text_at(const MembersJson& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

Result<Member> member_of(const MembersJson& json) {
  if (!json.is_object()) return damaged("expected a member");
  Member member{.name = text_at(json, "name"), .token_sha256 = text_at(json, "token_sha256")};
  if (Status name = check_name(member.name); !name.ok()) return damaged(name.error().message);
  if (!is_hex(member.token_sha256, kSecretBytes)) return damaged(member.name + ": token_sha256");
  const Result<WallTime> issued = parse_wall_time(text_at(json, "issued"));
  if (!issued.ok()) return damaged(member.name + ": issued");
  const Result<WallTime> expires = parse_wall_time(text_at(json, "expires"));
  if (!expires.ok()) return damaged(member.name + ": expires");
  member.issued = *issued;
  member.expires = *expires;
  // A missing field must not let a revoked member in again.
  if (!json.contains("revoked")) return damaged(member.name + ": revoked");
  if (json["revoked"].is_null()) return member;
  const Result<WallTime> revoked = parse_wall_time(text_at(json, "revoked"));
  if (!revoked.ok()) return damaged(member.name + ": revoked");
  member.revoked = *revoked;
  return member;
}

}  // namespace

std::string to_text(const std::vector<Member>& members) {
  MembersJson list = MembersJson::array();
  for (const Member& member : members) {
    list.push_back({{"name", member.name},
                    {"token_sha256", member.token_sha256},
                    {"issued", to_text(member.issued)},
                    {"expires", to_text(member.expires)},
                    {"revoked", nullptr}});
    if (member.revoked) list.back()["revoked"] = to_text(*member.revoked);
  }
  const MembersJson json{
      {"format", kMembersFormat}, {"version", kMembersVersion}, {"members", list}};
  return json.dump(2) + '\n';
}

Result<std::vector<Member>> parse_members(std::string_view text) {
  const MembersJson json = MembersJson::parse(text, nullptr, false);
  const bool is_list = json.is_object() && text_at(json, "format") == kMembersFormat &&
                       json.value("version", MembersJson()) == kMembersVersion &&
                       json.contains("members") && json["members"].is_array();
  if (!is_list) return damaged("this is not a list of members");
  std::vector<Member> members;
  for (const MembersJson& item : json["members"]) {
    Member member = LONGHAUL_TRY(member_of(item));
    members.push_back(std::move(member));
  }
  std::ranges::sort(members, {}, &Member::name);
  const auto twice = std::ranges::adjacent_find(members, {}, &Member::name);
  if (twice != members.end()) return damaged(twice->name + " is there twice");
  return members;
}

Result<std::vector<Member>> list_members(const std::filesystem::path& directory) {
  const std::filesystem::path file = file_in(directory);
  Result<std::string> text = read_private_file(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, file.parent_path().string() +
                                           ": no keys of a hub here; `longhaul keys init` makes "
                                           "them"};
  if (!text.ok()) return std::move(text).error();
  Result<std::vector<Member>> members = parse_members(*text);
  if (!members.ok()) return std::move(members).error().within(file.string());
  return members;
}

Status check_member(const std::vector<Member>& members, std::string_view name,
                    std::string_view token, WallTime now) {
  const auto refused = [](const char* why) { return Error{ErrorCode::kMismatch, why}; };
  const auto member = std::ranges::find(members, name, &Member::name);
  if (member == members.end()) return refused("unknown name");
  if (member->revoked) return refused("revoked");
  if (now > member->expires) return refused("its invite has expired");
  const bool is_theirs = equal_in_constant_time(sha256_hex(token), member->token_sha256);
  if (!is_theirs) return refused("wrong token");
  return Done{};
}

Result<StagedFile> stage_members_locked(const OwnedFd& /*lock*/,
                                        const std::filesystem::path& directory,
                                        const std::vector<Member>& members) {
  return StagedFile::write(file_in(directory), to_text(members));
}

}  // namespace longhaul::access
