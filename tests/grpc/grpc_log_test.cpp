#include "longhaul/grpc/grpc_log.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

// As gRPC 1.51 writes them.
TEST(GrpcLog, AFailedHandshakeIsToldInWordsForPeople) {
  const auto told = [](const std::string& cause) {
    return handshake_failure("Handshaking failed: UNKNOWN:Ssl handshake failed: " + cause +
                             R"( {file:"./src/core/lib/security/transport/handshaker.cc"})");
  };
  EXPECT_EQ(told("SSL_ERROR_SSL: error:0A0000C7:SSL routines::peer did not return a certificate"),
            "it showed no certificate");
  EXPECT_EQ(told("SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed"),
            "its certificate is of another authority, or expired");
  EXPECT_EQ(told("SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version number"),
            "it does not speak TLS");
  EXPECT_EQ(told("something new"), "no agreement on TLS");
}

}  // namespace
}  // namespace longhaul
