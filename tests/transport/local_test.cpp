#include "longhaul/transport/local.h"

#include <gtest/gtest.h>

#include "tests/transport/stream_conformance.h"

namespace longhaul {
namespace {

INSTANTIATE_TEST_SUITE_P(Local, TransportConformance,
                         ::testing::Values(TransportUnderTest{
                             .name = "local",
                             .make =
                                 [](const Acceptor& acceptor) {
                                   return std::make_unique<LocalNetwork>(acceptor, "me");
                                 }}),
                         [](const auto& transport) { return transport.param.name; });

Frame numbered(std::uint64_t id) {
  Frame frame;
  frame.mutable_ping()->set_id(id);
  return frame;
}

class LocalFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    replica_stream_ = network_.open(ears_of(2, replica_));
    hub_stream_ = hub().next<StreamOpened>().value();
    hub_stream_->read();
  }
  TestInbox& hub() { return *acceptor_.inbox; }

  TestAcceptor acceptor_;
  LocalNetwork network_{acceptor_.acceptor(), "me"};
  std::shared_ptr<TestInbox> replica_ = std::make_shared<TestInbox>();
  StreamPtr replica_stream_;
  StreamPtr hub_stream_;
};

TEST_F(LocalFaults, ACutLinkIsSilentAndHoldsWhatWasSent) {
  network_.cut();
  replica_stream_->write(numbered(5));
  EXPECT_TRUE(hub().is_quiet());
  EXPECT_TRUE(replica_->is_quiet());
  network_.restore();
  EXPECT_EQ(hub().next<FrameArrived>()->ping().id(), 5U);
  EXPECT_TRUE(replica_->next<FrameWritten>());
}

TEST_F(LocalFaults, ClosingOnACutLinkIsHeardAtTheOtherEndWhenItIsBack) {
  network_.cut();
  replica_stream_->close();
  EXPECT_TRUE(replica_->next<StreamClosed>());
  EXPECT_TRUE(hub().is_quiet());
  network_.restore();
  EXPECT_TRUE(hub().next<StreamClosed>());
}

TEST_F(LocalFaults, DroppedStreamsEndAtBothEnds) {
  network_.drop_all();
  EXPECT_TRUE(replica_->next<StreamClosed>());
  EXPECT_TRUE(hub().next<StreamClosed>());
}

TEST_F(LocalFaults, TheHubKnowsWhoIsThere) { EXPECT_EQ(hub_stream_->peer_name(), "me"); }

}  // namespace
}  // namespace longhaul
