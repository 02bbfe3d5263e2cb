#include "longhaul/access/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "longhaul/access/openssl.h"

namespace longhaul::access {
namespace {

using std::chrono::days;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr WallTime kNewYear{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
CertificateFacts of_one_year(const std::string& name) {
  return {.common_name = name, .valid_from = kNewYear, .valid_until = kNewYear + days(365)};
}

TlsKeys root_of(const std::string& name) {
  const std::string key = make_key().value();
  const std::string own = sign_root(of_one_year(name), key).value();
  return {.authority = own, .certificate = own, .key = key};
}

TlsKeys leaf_of(const TlsKeys& root, Role role, const CertificateFacts& facts) {
  const std::string key = make_key().value();
  return {.authority = root.certificate,
          .certificate = sign(root, role, facts, key).value(),
          .key = key};
}

TlsKeys replica_of(const TlsKeys& root, const std::string& name) {
  return leaf_of(root, Role::kReplica, of_one_year(name));
}

Status check_by(const TlsKeys& root, TlsKeys keys, Role role, WallTime now) {
  keys.authority = root.certificate;
  return check_keys(keys, role, now);
}

bool is_signed_by(const TlsKeys& leaf, const TlsKeys& root) {
  const CertificatePtr certificate = certificate_of(leaf.certificate).value();
  const CertificatePtr issuer = certificate_of(root.certificate).value();
  const bool is_good = X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return is_good;
}

TEST(Certificate, VerifiesWithItsAuthorityAndNoOther) {
  const TlsKeys root = root_of("one");
  const TlsKeys other = root_of("one");  // the same name does not help
  const TlsKeys replica = replica_of(root, "berlin");
  EXPECT_TRUE(is_signed_by(replica, root));
  EXPECT_FALSE(is_signed_by(replica, other));
  EXPECT_TRUE(check_by(root, replica, Role::kReplica, kNewYear).ok());
  const Status refused = check_by(other, replica, Role::kReplica, kNewYear);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
}

TEST(Certificate, OfAReplicaCannotPoseAsTheHub) {
  const TlsKeys root = root_of("one");
  const TlsKeys hub = leaf_of(root, Role::kHub, of_one_year("hub"));
  const TlsKeys replica = replica_of(root, "hub");
  EXPECT_TRUE(check_by(root, hub, Role::kHub, kNewYear).ok());
  EXPECT_FALSE(check_by(root, hub, Role::kReplica, kNewYear).ok());
  EXPECT_FALSE(check_by(root, replica, Role::kHub, kNewYear).ok());
}

TEST(Certificate, OfAReplicaCannotSignOthers) {
  const TlsKeys root = root_of("one");
  const TlsKeys replica = replica_of(root, "berlin");
  const TlsKeys forged = replica_of(replica, "oslo");
  EXPECT_FALSE(check_by(root, forged, Role::kReplica, kNewYear).ok());
  EXPECT_FALSE(check_by(replica, forged, Role::kReplica, kNewYear).ok());
}

TEST(Certificate, IsGoodWithinItsTimeOnly) {
  const TlsKeys root = root_of("one");
  const TlsKeys replica = leaf_of(root, Role::kReplica,
                                  {.common_name = "berlin",
                                   .valid_from = kNewYear + days(10),
                                   .valid_until = kNewYear + days(20)});
  const auto at = [&](int day) {
    return check_by(root, replica, Role::kReplica, kNewYear + days(day));
  };
  EXPECT_TRUE(at(10).ok());
  EXPECT_TRUE(at(19).ok());
  EXPECT_EQ(at(9).error().code, ErrorCode::kMismatch);
  EXPECT_EQ(at(21).error().code, ErrorCode::kDeadline);
}

TEST(Certificate, EndsWithItsAuthorityAtTheLatest) {
  const TlsKeys root = root_of("one");
  CertificateFacts longer = of_one_year("berlin");
  longer.valid_until = kNewYear + days(1000);
  const TlsKeys replica = leaf_of(root, Role::kReplica, longer);
  EXPECT_EQ(read_certificate(replica.certificate)->valid_until, kNewYear + days(365));
  const CertificateFacts after{.common_name = "late",
                               .valid_from = kNewYear + days(400),
                               .valid_until = kNewYear + days(500)};
  const auto refused = sign(root, Role::kReplica, after, replica.key);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("expired on 2027-01-01T00:00:00Z"));
}

TEST(Certificate, NamesItsHosts) {
  const TlsKeys root = root_of("one");
  CertificateFacts wanted = of_one_year("hub");
  wanted.hosts = {"hub.example.org", "192.0.2.7", "2001:db8::7"};
  const TlsKeys hub = leaf_of(root, Role::kHub, wanted);
  const Result<CertificateFacts> facts = read_certificate(hub.certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "hub");
  EXPECT_THAT(facts->hosts, ElementsAre("hub.example.org", "192.0.2.7", "2001:db8::7"));
  const CertificatePtr parsed = certificate_of(hub.certificate).value();
  EXPECT_EQ(X509_check_host(parsed.get(), "hub.example.org", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(parsed.get(), "other.example.org", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(parsed.get(), "2001:db8:0::7", 0), 1);
}

TEST(Certificate, KeyOfAnotherIsRefused) {
  const TlsKeys root = root_of("one");
  TlsKeys mixed = replica_of(root, "berlin");
  mixed.key = make_key().value();
  EXPECT_FALSE(check_by(root, mixed, Role::kReplica, kNewYear).ok());
  TlsKeys wrong_root = root;
  wrong_root.key = mixed.key;
  EXPECT_FALSE(sign(wrong_root, Role::kReplica, of_one_year("x"), mixed.key).ok());
}

TEST(Certificate, TextMustBeExactlyOnePem) {
  const TlsKeys root = root_of("one");
  const std::string& pem = root.certificate;
  for (const std::string& text : {std::string{}, std::string("nonsense"), pem + pem, "x\n" + pem,
                                  pem + "x", pem.substr(0, pem.size() / 2), root.key})
    EXPECT_FALSE(read_certificate(text).ok()) << text;
  EXPECT_FALSE(key_of(pem).ok());
  EXPECT_FALSE(key_of(root.key + root.key).ok());
}

TEST(Certificate, KeyWithAPassphraseIsRefusedWithoutAsking) {
  const KeyPtr key = key_of(make_key().value()).value();
  const BioPtr bio(BIO_new(BIO_s_mem()));
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), EVP_aes_128_cbc(), "secret", 6,
                                          nullptr, nullptr),
            1);
  std::string pem(BIO_ctrl_pending(bio.get()), '\0');
  std::size_t count = 0;
  ASSERT_EQ(BIO_read_ex(bio.get(), pem.data(), pem.size(), &count), 1);
  EXPECT_FALSE(key_of(pem).ok());
}

}  // namespace
}  // namespace longhaul::access
