// The keys that one end of a TLS connection needs.
#pragma once

#include <string>

namespace longhaul {

// The keys of one end of a TLS connection.
// PEM texts.
struct TlsKeys {
  std::string authority;    // whose certificates are accepted
  std::string certificate;  // one's own
  std::string key;          // of the certificate: PKCS #8, without a passphrase
  bool operator==(const TlsKeys&) const = default;
};

}  // namespace longhaul
