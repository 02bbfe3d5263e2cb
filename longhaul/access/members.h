// The list of invited replicas: names with the digests of their tokens, in members.json of the
// hub's directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/access/private_file.h"
#include "longhaul/access/wall_time.h"
#include "longhaul/base/result.h"

namespace longhaul::access {

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

enum class Admission : std::uint8_t { kOk, kUnknown, kRevoked, kExpired, kWrongToken };
std::string_view name_of(Admission admission);

// Reads its file anew at every call, so that a revocation holds for the next join. Callable from
// every thread; a change by another process is seen whole or not at all.
class Members {
 public:
  explicit Members(const std::filesystem::path& directory) : file_(directory / "members.json") {}

  // Sorted by name.
  [[nodiscard]] Result<std::vector<Member>> list() const;

  // The time of comparing tokens says nothing about them. Whether the name is that of the peer's
  // certificate is for the caller to see. TLS looks at a certificate's time only when a session
  // begins, not when it is taken up again.
  [[nodiscard]] Result<Admission> check(std::string_view name, std::string_view token,
                                        WallTime now) const;

  // A new list; committed, readers see the old one or the new one.
  [[nodiscard]] Result<StagedFile> stage_locked(const DirectoryLock& lock,
                                                const std::vector<Member>& members) const;
  Status save_locked(const DirectoryLock& lock, const std::vector<Member>& members) const;

 private:
  std::filesystem::path file_;
};

}  // namespace longhaul::access
