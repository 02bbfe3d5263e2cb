// The list of invited replicas: names with the digests of their tokens, in members.json of the
// hub's directory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/access/private_file.h"
#include "longhaul/access/wall_time.h"
#include "longhaul/base/result.h"

namespace longhaul::access {

// A replica that was invited.
struct Member {
  std::string name;
  std::string token_sha256;  // of the token's 64 hex digits; the token itself is in the invite only
  WallTime issued;
  WallTime expires;
  std::optional<WallTime> revoked;
  bool operator==(const Member&) const = default;
};

// The content of members.json. Sorts by name. Refuses a list as a whole if anything in it is
// missing or strange.
std::string to_text(const std::vector<Member>& members);
Result<std::vector<Member>> parse_members(std::string_view text);

// The list of a hub's directory, sorted by name. Reads it anew at every call, so that a revocation
// holds for the next join. Callable from every thread; a change by another process is seen whole or
// not at all.
Result<std::vector<Member>> list_members(const std::filesystem::path& directory);

// Whether a peer may join. An error is kMismatch and says why not. The time of comparing tokens
// says nothing about them. Whether the name is that of the peer's certificate is for the caller to
// see. TLS looks at a certificate's time only when a session begins, not when it is taken up again.
Status check_member(const std::vector<Member>& members, std::string_view name,
                    std::string_view token, WallTime now);

// A new list; committed, readers see the old one or the new one. `lock` is of lock_directory().
Result<StagedFile> stage_members_locked(const OwnedFd& lock, const std::filesystem::path& directory,
                                        const std::vector<Member>& members);

}  // namespace longhaul::access
