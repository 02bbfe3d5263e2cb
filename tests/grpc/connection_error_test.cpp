// The texts are gRPC 1.51's own, as it gave them on loopback and for a name in .invalid.
#include "longhaul/grpc/connection_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAll = "failed to connect to all addresses; last error: ";

TEST(ConnectionError, SaysWhetherTheHubMayAnswerLater) {
  struct Case {
    std::string cause;
    ErrorCode code;
    std::string says;
  };
  const std::array<Case, 7> cases{{
      {std::string(kAll) +
           "UNKNOWN: ipv4:127.0.0.1:9: Failed to connect to remote host: Connection refused",
       ErrorCode::kClosed, "hub at h.example:7070: it does not answer (connection refused)"},
      {std::string(kAll) +
           "UNKNOWN: ipv6:%5B::1%5D:9: Failed to connect to remote host: Connection refused",
       ErrorCode::kClosed, "hub at h.example:7070: it does not answer (connection refused)"},
      {std::string(kAll) + "UNAVAILABLE: ipv4:127.0.0.1:8080: Failed parsing HTTP/2",
       ErrorCode::kNotFound,
       "hub at h.example:7070: something else than a hub answers on this port, or it expects TLS "
       "(an invite)"},
      {std::string(kAll) + "UNKNOWN: ipv4:127.0.0.1:8081: connection attempt timed out before "
                           "receiving SETTINGS frame",
       ErrorCode::kClosed, "hub at h.example:7070: it does not answer (nothing came in time)"},
      {"DNS resolution failed for h.example:7070: C-ares status is not ARES_SUCCESS qtype=AAAA "
       "name=h.example is_balancer=0: Domain name not found",
       ErrorCode::kNotFound, "cannot find the host h.example: check the spelling or DNS"},
      {"DNS resolution failed for h.example:7070: C-ares status is not ARES_SUCCESS qtype=A "
       "name=h.example is_balancer=0: Timeout while contacting DNS servers",
       ErrorCode::kClosed, "cannot find the host h.example now: DNS does not answer"},
      {"Socket closed", ErrorCode::kNotFound,
       "hub at h.example:7070: it closed at once; does it expect TLS (an invite)?"},
  }};
  for (const Case& one : cases) {
    const Error error = connection_error(one.cause, "h.example:7070", false);
    EXPECT_EQ(error.message, one.says);
    EXPECT_EQ(error.code, one.code) << one.cause;
    for (const char* word : {"ares", "ipv4", "UNKNOWN", "UNAVAILABLE", "HTTP/2"})
      EXPECT_THAT(error.message, Not(HasSubstr(word)));
  }
}

TEST(ConnectionError, OverTlsItIsAboutCertificates) {
  const Error error = connection_error(
      std::string(kAll) + "UNKNOWN: Ssl handshake failed: SSL_ERROR_SSL: error:1000007d", "h:1",
      true);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("no agreement on TLS"));
}

TEST(ConnectionError, OfAHubThatWasHeardOfSaysThatItBroke) {
  const Error error = broken_connection("Socket closed", "h:1");
  EXPECT_EQ(error, (Error{ErrorCode::kClosed, "hub at h:1: the connection broke"}));
  EXPECT_EQ(broken_connection("keepalive watchdog timeout", "h:1"),
            (Error{ErrorCode::kClosed, "hub at h:1: nothing came in time"}));
}

}  // namespace
}  // namespace longhaul
