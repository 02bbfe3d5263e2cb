// The keys of a hub, in one directory: an authority of its own, the hub's certificate, who is
// invited. docs/keys.md lists the files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "longhaul/access/certificate.h"
#include "longhaul/access/wall_time.h"
#include "longhaul/base/result.h"
#include "longhaul/base/tls_keys.h"

namespace longhaul::access {

// kInvalidArgument is wrong use (a name or an address that is none); all else is the world.

// Makes the directory and its keys, once: one that holds any of them already is refused. The hub's
// certificate names `hosts`, localhost and 127.0.0.1; it is described in the result.
Result<CertificateFacts> create_authority(const std::filesystem::path& directory,
                                          const std::vector<std::string>& hosts, WallTime now);

inline constexpr int kInviteDays = 365;
inline constexpr int kMostInviteDays = 3650;

// Whom to invite, and for how long.
struct InviteOptions {
  std::string name;
  std::string address;  // HOST:PORT at which the replica dials the hub
  int days = kInviteDays;
  bool replace = false;        // a name that is invited already, and its file
  bool is_forced = false;      // whatever file it is
  std::filesystem::path file;  // empty: NAME.invite in the working directory
};

// An invitation that was written.
struct Invited {
  std::filesystem::path file;
  std::string address;  // normal
  WallTime expires;
  // The hub's certificate did not name this host and was signed anew, with the same key: a hub that
  // runs shows it after a restart.
  bool is_host_new = false;
};

// Writes the invite, and its token's digest to the list of members. Where that fails nobody new is
// invited, and who was invited before still is.
Result<Invited> invite(const std::filesystem::path& directory, const InviteOptions& request,
                       WallTime now);

// Since when; for one that was revoked before, since then.
Result<WallTime> revoke(const std::filesystem::path& directory, const std::string& name,
                        WallTime now);

// The keys of the TLS server. The authority's own key is not among them and may be kept elsewhere.
// Refuses keys that others can read, that do not belong together or that are out of their time.
Result<TlsKeys> load_hub_keys(const std::filesystem::path& directory, WallTime now);

}  // namespace longhaul::access
