// X.509 certificates of a private authority as PEM text: EC keys on P-256, signed with SHA-256.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/access/wall_time.h"
#include "longhaul/base/result.h"
#include "longhaul/base/tls_keys.h"

namespace longhaul::access {

// Written into the certificate as its only use: a replica's certificate cannot pose as the hub.
enum class Role : std::uint8_t { kHub, kReplica };

// The content of a certificate that was read.
struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> hosts;  // normal; of the hub
  WallTime valid_from;
  WallTime valid_until;
};

Result<std::string> make_key();

// The certificate of an authority: signed with its own key, good for signing others and no more.
Result<std::string> sign_root(const CertificateFacts& facts, const std::string& key_pem);

// A certificate for `key_pem` in the name of `root`. It ends with its root's at the latest.
Result<std::string> sign(const TlsKeys& root, Role role, const CertificateFacts& facts,
                         const std::string& key_pem);

Result<CertificateFacts> read_certificate(std::string_view pem);

// Fails unless the key is the certificate's, and the certificate is signed by the authority, made
// for `role` and within its time. An expired one is kDeadline, any other kMismatch.
Status check_keys(const TlsKeys& keys, Role role, WallTime now);

}  // namespace longhaul::access
