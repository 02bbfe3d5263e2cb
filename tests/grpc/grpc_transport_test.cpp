#include "longhaul/grpc/grpc_transport.h"

#include <gtest/gtest.h>

#include "longhaul/link/relay.h"
#include "tests/grpc/compressing_peer.h"
#include "tests/transport/stream_conformance.h"

namespace longhaul {
namespace {

constexpr const char* kAnyPort = "127.0.0.1:0";

// A server and its connector as one thing.
class Served final : public Connector {
 public:
  explicit Served(const Acceptor& acceptor)
      : server_(GrpcServer::start(acceptor, kAnyPort, std::nullopt).value()) {}
  StreamPtr open(StreamListener listener) override {
    return make_grpc_connector("127.0.0.1:" + std::to_string(server_->port()), std::nullopt)
        ->open(std::move(listener));
  }

 private:
  std::unique_ptr<GrpcServer> server_;
};

INSTANTIATE_TEST_SUITE_P(
    Grpc, TransportConformance,
    ::testing::Values(TransportUnderTest{
        .name = "plain",
        .make = [](const Acceptor& acceptor) { return std::make_unique<Served>(acceptor); }}),
    [](const auto& transport) { return transport.param.name; });

TEST(GrpcServer, APortThatIsTakenIsAnErrorThatSaysSo) {
  TestAcceptor acceptor;
  const auto first = GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt);
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = GrpcServer::start(acceptor.acceptor(), address, std::nullopt);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(address), std::string::npos);
}

TEST(GrpcConnector, NobodyThereIsAnErrorThatNamesTheAddress) {
  auto inbox = std::make_shared<TestInbox>();
  int port = 0;
  {
    TestAcceptor acceptor;
    port = GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt)
               .value()
               ->port();  // free again after this
  }
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const StreamPtr stream = make_grpc_connector(address, std::nullopt)->open(ears_of(1, inbox));
  stream->read();
  const std::optional<StreamClosed> closed = inbox->next<StreamClosed>();
  ASSERT_TRUE(closed);
  EXPECT_NE(closed->message.find(address), std::string::npos) << closed->message;
}

TEST(GrpcKeepalive, AConnectionThatBreaksWithoutASoundEndsAtBothEnds) {
  constexpr Keepalive kShort{.every = Seconds(0.2), .patience = Seconds(0.3)};
  auto inbox = std::make_shared<TestInbox>();
  TestAcceptor acceptor;
  const auto server =
      GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt, kShort).value();
  const RateTrace rate = RateTrace::constant(Bandwidth{.bytes_per_second = 1e7});
  const auto relay =
      Relay::start(static_cast<std::uint16_t>(server->port()), {.up = rate, .down = rate}).value();
  const StreamPtr stream =
      make_grpc_connector("127.0.0.1:" + std::to_string(relay->port()), std::nullopt, kShort)
          ->open(ears_of(1, inbox));
  stream->write(Frame());
  EXPECT_TRUE(inbox->next<FrameWritten>());
  const StreamPtr at_hub = acceptor.inbox->next<StreamOpened>().value();
  stream->read();
  at_hub->read();
  EXPECT_TRUE(acceptor.inbox->next<FrameArrived>());
  at_hub->read();
  relay->cut();
  EXPECT_TRUE(inbox->next<StreamClosed>());
  EXPECT_TRUE(acceptor.inbox->next<StreamClosed>());
}

// Not as one that has never agreed on TLS.
TEST(GrpcConnector, AConnectionThatBreaksAfterTheHubWasHeardIsToldAsSuch) {
  auto inbox = std::make_shared<TestInbox>();
  TestAcceptor acceptor;
  const auto server = GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt).value();
  const RateTrace rate = RateTrace::constant(Bandwidth{.bytes_per_second = 1e7});
  auto relay =
      Relay::start(static_cast<std::uint16_t>(server->port()), {.up = rate, .down = rate}).value();
  const StreamPtr stream =
      make_grpc_connector("127.0.0.1:" + std::to_string(relay->port()), std::nullopt)
          ->open(ears_of(1, inbox));
  stream->write(Frame());
  EXPECT_TRUE(inbox->next<FrameWritten>());
  const StreamPtr at_hub = acceptor.inbox->next<StreamOpened>().value();
  at_hub->write(Frame());
  stream->read();
  ASSERT_TRUE(inbox->next<FrameArrived>());
  stream->read();
  relay.reset();
  const std::optional<StreamClosed> closed = inbox->next<StreamClosed>();
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->message.find("TLS"), std::string::npos) << closed->message;
}

// A few bytes may stand for a thousand times as many, and gRPC counts them when they are there.
TEST(GrpcServer, DoesNotInflateWhatItIsSent) {
  TestAcceptor acceptor;
  const auto server = GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt).value();
  const auto peer = send_compressed(server->port());
  const StreamPtr at_hub = acceptor.inbox->next<StreamOpened>().value();
  at_hub->read();
  EXPECT_TRUE(acceptor.inbox->next<StreamClosed>());
}

TEST(GrpcServer, EndsStreamsThatAreOpenWhenItGoes) {
  auto inbox = std::make_shared<TestInbox>();
  TestAcceptor acceptor;
  auto server = GrpcServer::start(acceptor.acceptor(), kAnyPort, std::nullopt).value();
  const StreamPtr stream =
      make_grpc_connector("127.0.0.1:" + std::to_string(server->port()), std::nullopt)
          ->open(ears_of(1, inbox));
  stream->write(Frame());
  EXPECT_TRUE(inbox->next<FrameWritten>());
  StreamPtr at_hub = acceptor.inbox->next<StreamOpened>().value();
  stream->read();
  server.reset();
  EXPECT_TRUE(inbox->next<StreamClosed>());
  EXPECT_TRUE(acceptor.inbox->next<StreamClosed>());
}

}  // namespace
}  // namespace longhaul
