// An invite: one file with everything that a replica needs to join a hub. docs/keys.md describes
// its fields.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "longhaul/access/certificate.h"
#include "longhaul/base/result.h"

namespace longhaul::access {

inline constexpr std::string_view kInviteFormat = "longhaul invite";  // in every one

struct Invite {
  std::string name;     // of the replica; the common name of its certificate
  std::string address;  // of the hub, HOST:PORT
  std::string token;    // 64 hex digits
  TlsKeys keys;         // of the replica
  bool operator==(const Invite&) const = default;
};

std::string to_text(const Invite& invite);

// Nothing in `text` is trusted: what comes back is complete, undamaged and of one piece
// (certificate, key, name and authority belong together), and `now` is within its time. An expired
// one is kDeadline; what is no invite, or a damaged one, kCorruptPayload; what does not fit,
// kMismatch.
Result<Invite> parse_invite(std::string_view text, WallTime now);

// From a file that nobody else can read, as it holds a key.
Result<Invite> read_invite(const std::filesystem::path& file, WallTime now);

}  // namespace longhaul::access
