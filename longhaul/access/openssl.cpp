#include "longhaul/access/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits>

namespace longhaul::access {
namespace {

BioPtr reader_of(std::string_view text) {
  if (text.size() > std::size_t{std::numeric_limits<int>::max()}) return nullptr;
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string written_to(BIO& bio) {
  std::string text(BIO_ctrl_pending(&bio), '\0');
  std::size_t count = 0;
  if (BIO_read_ex(&bio, text.data(), text.size(), &count) != 1) count = 0;
  text.resize(count);
  return text;
}

// In place of OpenSSL's own, which asks at the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

// A key holds its public half too, and only that is compared with a certificate.
bool is_whole(EVP_PKEY& key) {
  const KeyUsePtr use(EVP_PKEY_CTX_new_from_pkey(nullptr, &key, nullptr));
  return use != nullptr && EVP_PKEY_pairwise_check(use.get()) == 1;
}

}  // namespace

Error openssl_error(const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  ERR_clear_error();
  const std::string cause = reason == nullptr ? "" : std::string(" (OpenSSL: ") + reason + ')';
  return Error{ErrorCode::kCorruptPayload, what + cause};
}

Result<CertificatePtr> certificate_of(std::string_view pem) {
  const BioPtr bio = reader_of(pem);
  CertificatePtr certificate(
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (certificate == nullptr) return openssl_error("not a PEM certificate");
  if (pem_of(*certificate) != pem) return openssl_error("more than one PEM certificate");
  return certificate;
}

Result<KeyPtr> key_of(std::string_view pem) {
  const BioPtr bio = reader_of(pem);
  KeyPtr key(bio == nullptr ? nullptr
                            : PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (key == nullptr) return openssl_error("not a PEM key");
  if (pem_of(*key) != pem) return openssl_error("more than one PKCS #8 key");
  if (!is_whole(*key)) return openssl_error("a damaged key");
  return key;
}

std::string pem_of(const X509& certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_X509(bio.get(), &certificate) != 1) return {};
  return written_to(*bio);
}

std::string pem_of(const EVP_PKEY& key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  const bool is_written =
      bio != nullptr &&
      PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
  return is_written ? written_to(*bio) : std::string{};
}

}  // namespace longhaul::access
