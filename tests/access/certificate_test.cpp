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
constexpr Validity kOneYear{.from = kNewYear, .until = kNewYear + days(365)};

Identity root_of(const std::string& name) {
  const std::string key = make_key().value();
  return {.certificate_pem = sign_root(key, name, kOneYear).value(), .key_pem = key};
}

Identity leaf_of(const Identity& root, const CertificateOptions& request) {
  const std::string key = make_key().value();
  return {.certificate_pem = sign(root, request, key).value(), .key_pem = key};
}

Identity replica_of(const Identity& root, const std::string& name) {
  return leaf_of(root, {.role = Role::kReplica, .common_name = name, .validity = kOneYear});
}

bool is_signed_by(const Identity& leaf, const Identity& root) {
  const CertificatePtr certificate = certificate_of(leaf.certificate_pem).value();
  const CertificatePtr issuer = certificate_of(root.certificate_pem).value();
  const bool is_good = X509_verify(certificate.get(), X509_get0_pubkey(issuer.get())) == 1;
  ERR_clear_error();
  return is_good;
}

TEST(Certificate, VerifiesWithItsAuthorityAndNoOther) {
  const Identity root = root_of("one");
  const Identity other = root_of("one");  // the same name does not help
  const Identity replica = replica_of(root, "berlin");
  EXPECT_TRUE(is_signed_by(replica, root));
  EXPECT_FALSE(is_signed_by(replica, other));
  EXPECT_TRUE(check_identity(root.certificate_pem, replica, Role::kReplica, kNewYear).ok());
  const Status refused = check_identity(other.certificate_pem, replica, Role::kReplica, kNewYear);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
}

TEST(Certificate, OfAReplicaCannotPoseAsTheHub) {
  const Identity root = root_of("one");
  const Identity hub =
      leaf_of(root, {.role = Role::kHub, .common_name = "hub", .validity = kOneYear});
  const Identity replica = replica_of(root, "hub");
  EXPECT_TRUE(check_identity(root.certificate_pem, hub, Role::kHub, kNewYear).ok());
  EXPECT_FALSE(check_identity(root.certificate_pem, hub, Role::kReplica, kNewYear).ok());
  EXPECT_FALSE(check_identity(root.certificate_pem, replica, Role::kHub, kNewYear).ok());
}

TEST(Certificate, OfAReplicaCannotSignOthers) {
  const Identity root = root_of("one");
  const Identity replica = replica_of(root, "berlin");
  const Identity forged = replica_of(replica, "oslo");
  EXPECT_FALSE(check_identity(root.certificate_pem, forged, Role::kReplica, kNewYear).ok());
  EXPECT_FALSE(check_identity(replica.certificate_pem, forged, Role::kReplica, kNewYear).ok());
}

TEST(Certificate, IsGoodWithinItsTimeOnly) {
  const Identity root = root_of("one");
  const Identity replica =
      leaf_of(root, {.common_name = "berlin",
                     .validity = {.from = kNewYear + days(10), .until = kNewYear + days(20)}});
  const auto at = [&](int day) {
    return check_identity(root.certificate_pem, replica, Role::kReplica, kNewYear + days(day));
  };
  EXPECT_TRUE(at(10).ok());
  EXPECT_TRUE(at(19).ok());
  EXPECT_EQ(at(9).error().code, ErrorCode::kMismatch);
  EXPECT_EQ(at(21).error().code, ErrorCode::kDeadline);
}

TEST(Certificate, EndsWithItsAuthorityAtTheLatest) {
  const Identity root = root_of("one");
  const Validity longer{.from = kNewYear, .until = kNewYear + days(1000)};
  const Identity replica = leaf_of(root, {.common_name = "berlin", .validity = longer});
  EXPECT_EQ(read_certificate(replica.certificate_pem)->validity.until, kOneYear.until);
  const Validity after{.from = kNewYear + days(400), .until = kNewYear + days(500)};
  const auto refused = sign(root, {.common_name = "late", .validity = after}, replica.key_pem);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("expired on 2027-01-01T00:00:00Z"));
}

TEST(Certificate, NamesItsHosts) {
  const Identity root = root_of("one");
  const Identity hub = leaf_of(root, {.role = Role::kHub,
                                      .common_name = "hub",
                                      .hosts = {"hub.example.org", "192.0.2.7", "2001:db8::7"},
                                      .validity = kOneYear});
  const Result<CertificateFacts> facts = read_certificate(hub.certificate_pem);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "hub");
  EXPECT_THAT(facts->hosts, ElementsAre("hub.example.org", "192.0.2.7", "2001:db8::7"));
  const CertificatePtr parsed = certificate_of(hub.certificate_pem).value();
  EXPECT_EQ(X509_check_host(parsed.get(), "hub.example.org", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(parsed.get(), "other.example.org", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(parsed.get(), "2001:db8:0::7", 0), 1);
}

TEST(Certificate, KeyOfAnotherIsRefused) {
  const Identity root = root_of("one");
  Identity mixed = replica_of(root, "berlin");
  mixed.key_pem = make_key().value();
  EXPECT_FALSE(check_identity(root.certificate_pem, mixed, Role::kReplica, kNewYear).ok());
  const Identity wrong_root{.certificate_pem = root.certificate_pem, .key_pem = mixed.key_pem};
  EXPECT_FALSE(sign(wrong_root, {.common_name = "x", .validity = kOneYear}, mixed.key_pem).ok());
}

TEST(Certificate, TextMustBeExactlyOnePem) {
  const Identity root = root_of("one");
  const std::string& pem = root.certificate_pem;
  for (const std::string& text : {std::string{}, std::string("nonsense"), pem + pem, "x\n" + pem,
                                  pem + "x", pem.substr(0, pem.size() / 2), root.key_pem})
    EXPECT_FALSE(read_certificate(text).ok()) << text;
  EXPECT_FALSE(key_of(pem).ok());
  EXPECT_FALSE(key_of(root.key_pem + root.key_pem).ok());
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
