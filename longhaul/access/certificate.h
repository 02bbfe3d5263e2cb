// X.509 certificates of a private authority as PEM text: EC keys on P-256, signed with SHA-256.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/access/wall_time.h"
#include "longhaul/base/result.h"

namespace longhaul::access {

struct Identity {
  std::string certificate_pem;
  std::string key_pem;  // PKCS #8, without a passphrase
  bool operator==(const Identity&) const = default;
};

// Written into the certificate as its only use: a replica's certificate cannot pose as the hub.
enum class Role : std::uint8_t { kHub, kReplica };

struct Validity {
  WallTime from;
  WallTime until;
};

struct CertificateOptions {
  Role role = Role::kReplica;
  std::string common_name;
  std::vector<std::string> hosts;  // normal; of the hub
  Validity validity;
};

Result<std::string> make_key();

// The certificate of an authority: signed with its own key, good for signing others and no more.
Result<std::string> sign_root(const std::string& key_pem, const std::string& common_name,
                              const Validity& validity);

// A certificate for `key_pem` in the name of `root`. It ends with its root's at the latest.
Result<std::string> sign(const Identity& root, const CertificateOptions& request,
                         const std::string& key_pem);

struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> hosts;  // normal
  Validity validity;
};
Result<CertificateFacts> read_certificate(std::string_view pem);

// Fails unless the key is the certificate's, and the certificate is signed by `root_pem`, made for
// `role` and within its time. An expired one is kDeadline, any other kMismatch.
Status check_identity(const std::string& root_pem, const Identity& identity, Role role,
                      WallTime now);

}  // namespace longhaul::access
