#include "longhaul/access/certificate.h"

#include <arpa/inet.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "longhaul/access/names.h"
#include "longhaul/access/openssl.h"

namespace longhaul::access {
namespace {

constexpr int kSerialBits = 127;  // positive, and at most 20 bytes: RFC 5280

// The NID of an extension, and its value as in OpenSSL's configuration files.
using Extensions = std::vector<std::pair<int, std::string>>;

std::time_t seconds_of(WallTime time) {
  return static_cast<std::time_t>(time.time_since_epoch().count());
}

WallTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return WallTime{};
  return WallTime{std::chrono::seconds(::timegm(&parts))};
}

bool set_serial(X509& certificate) {
  const NumberPtr serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

bool set_subject(X509& certificate, const std::string& common_name) {
  const auto* text = reinterpret_cast<const unsigned char*>(common_name.data());
  return X509_NAME_add_entry_by_NID(X509_get_subject_name(&certificate), NID_commonName,
                                    MBSTRING_UTF8, text, static_cast<int>(common_name.size()), -1,
                                    0) == 1;
}

// Everything but issuer, extensions and signature.
CertificatePtr draft(EVP_PKEY& key, const CertificateFacts& facts) {
  CertificatePtr certificate(X509_new());
  const bool is_done =
      certificate != nullptr && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      set_serial(*certificate) && set_subject(*certificate, facts.common_name) &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), seconds_of(facts.valid_from)) !=
          nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), seconds_of(facts.valid_until)) !=
          nullptr &&
      X509_set_pubkey(certificate.get(), &key) == 1;
  return is_done ? std::move(certificate) : nullptr;
}

bool add_extensions(X509& certificate, X509& issuer, const Extensions& extensions) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  for (const auto& [nid, value] : extensions) {
    const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
    if (extension == nullptr || X509_add_ext(&certificate, extension.get(), -1) != 1) return false;
  }
  return true;
}

// The PEM text of `certificate`, completed and signed by `issuer`, which may be itself.
Result<std::string> finish(X509& certificate, X509& issuer, EVP_PKEY& issuer_key,
                           const Extensions& extensions) {
  const bool is_signed = X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1 &&
                         add_extensions(certificate, issuer, extensions) &&
                         X509_sign(&certificate, &issuer_key, EVP_sha256()) != 0;
  std::string pem = is_signed ? pem_of(certificate) : std::string{};
  if (pem.empty()) return openssl_error("cannot sign a certificate");
  return pem;
}

std::string host_list(const std::vector<std::string>& hosts) {
  std::string list;
  for (const std::string& host : hosts) {
    if (!list.empty()) list += ',';
    list.append(is_ip(host) ? "IP:" : "DNS:").append(host);
  }
  return list;
}

Extensions leaf_extensions(Role role, const std::vector<std::string>& hosts) {
  Extensions extensions{
      {NID_basic_constraints, "critical,CA:FALSE"},
      {NID_key_usage, "critical,digitalSignature"},
      {NID_ext_key_usage, role == Role::kHub ? "serverAuth" : "clientAuth"},
      {NID_subject_key_identifier, "hash"},
      {NID_authority_key_identifier, "keyid:always"},
  };
  if (!hosts.empty()) extensions.emplace_back(NID_subject_alt_name, host_list(hosts));
  return extensions;
}

std::string common_name_of(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (index < 0) return {};
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index));
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// Empty for kinds of names that hubs do not have.
std::string host_of(const GENERAL_NAME& name) {
  int kind = 0;
  const auto* text = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(&name, &kind));
  const unsigned char* data = ASN1_STRING_get0_data(text);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(text));
  if (kind == GEN_DNS) return {reinterpret_cast<const char*>(data), size};
  if (kind != GEN_IPADD || (size != sizeof(in_addr) && size != sizeof(in6_addr))) return {};
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  return ::inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, data, shortest.data(),
                     shortest.size());
}

std::vector<std::string> hosts_of(const X509& certificate) {
  const HostNamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> hosts;
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    std::string host = host_of(*sk_GENERAL_NAME_value(names.get(), i));
    if (!host.empty()) hosts.push_back(std::move(host));
  }
  return hosts;
}

Error verification_error(int cause) {
  ERR_clear_error();
  const bool is_late = cause == X509_V_ERR_CERT_HAS_EXPIRED;
  return Error{is_late ? ErrorCode::kDeadline : ErrorCode::kMismatch,
               X509_verify_cert_error_string(cause)};
}

Status check_signature(X509& root, X509& certificate, Role role, WallTime now) {
  const StorePtr store(X509_STORE_new());
  const VerificationPtr context(X509_STORE_CTX_new());
  const bool is_ready = store != nullptr && context != nullptr &&
                        X509_STORE_add_cert(store.get(), &root) == 1 &&
                        X509_STORE_CTX_init(context.get(), store.get(), &certificate, nullptr) == 1;
  if (!is_ready) return openssl_error("cannot verify a certificate");
  const int purpose = role == Role::kHub ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  X509_STORE_CTX_set_time(context.get(), 0, seconds_of(now));
  // Trust in a root does not rest on its own signature, but a damaged one is noticed by it.
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_CHECK_SS_SIGNATURE);
  if (X509_STORE_CTX_set_purpose(context.get(), purpose) != 1)
    return openssl_error("cannot verify a certificate");
  if (X509_verify_cert(context.get()) == 1) return Done{};
  return verification_error(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

Result<std::string> make_key() {
  const KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  std::string pem = key == nullptr ? std::string{} : pem_of(*key);
  if (pem.empty()) return openssl_error("cannot make a key");
  return pem;
}

Result<std::string> sign_root(const CertificateFacts& facts, const std::string& key_pem) {
  KeyPtr key = LONGHAUL_TRY(key_of(key_pem));
  const CertificatePtr certificate = draft(*key, facts);
  if (certificate == nullptr) return openssl_error("cannot make a certificate");
  const Extensions extensions{
      {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
      {NID_key_usage, "critical,keyCertSign,cRLSign"},
      {NID_subject_key_identifier, "hash"},
  };
  return finish(*certificate, *certificate, *key, extensions);
}

Result<std::string> sign(const TlsKeys& root, Role role, const CertificateFacts& facts,
                         const std::string& key_pem) {
  Result<CertificatePtr> issuer = certificate_of(root.certificate);
  if (!issuer.ok()) return std::move(issuer).error().within("authority");
  Result<KeyPtr> issuer_key = key_of(root.key);
  if (!issuer_key.ok()) return std::move(issuer_key).error().within("authority");
  if (X509_check_private_key(issuer->get(), issuer_key->get()) != 1)
    return openssl_error("authority: its key and its certificate do not belong together");
  KeyPtr key = LONGHAUL_TRY(key_of(key_pem));
  CertificateFacts own = facts;
  own.valid_until = std::min(own.valid_until, time_of(X509_get0_notAfter(issuer->get())));
  if (own.valid_until <= own.valid_from)
    return Error{ErrorCode::kDeadline, "authority: expired on " + to_text(own.valid_until)};
  const CertificatePtr certificate = draft(*key, own);
  if (certificate == nullptr) return openssl_error("cannot make a certificate");
  return finish(*certificate, **issuer, **issuer_key, leaf_extensions(role, own.hosts));
}

Result<CertificateFacts> read_certificate(std::string_view pem) {
  CertificatePtr certificate = LONGHAUL_TRY(certificate_of(pem));
  const X509& parsed = *certificate;
  return CertificateFacts{.common_name = common_name_of(parsed),
                          .hosts = hosts_of(parsed),
                          .valid_from = time_of(X509_get0_notBefore(&parsed)),
                          .valid_until = time_of(X509_get0_notAfter(&parsed))};
}

Status check_keys(const TlsKeys& keys, Role role, WallTime now) {
  Result<CertificatePtr> root = certificate_of(keys.authority);
  if (!root.ok()) return std::move(root).error().within("authority");
  CertificatePtr certificate = LONGHAUL_TRY(certificate_of(keys.certificate));
  KeyPtr key = LONGHAUL_TRY(key_of(keys.key));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::kMismatch, "the key is not the certificate's"};
  }
  return check_signature(**root, *certificate, role, now);
}

}  // namespace longhaul::access
