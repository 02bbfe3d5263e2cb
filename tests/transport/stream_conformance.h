// What every transport does alike. A transport joins by making one of these.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "longhaul/base/mailbox.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// A loop without a thread: the test takes the events out itself.
class TestInbox {
 public:
  void put(StreamEvent event) { ASSERT_TRUE(events_.try_push(std::move(event))); }

  // The next event of this kind; others before it are a failure.
  template <typename What>
  std::optional<What> next() {
    std::optional<StreamEvent> event = events_.pop_until(deadline_after(Seconds(20)));
    if (!event) {
      ADD_FAILURE() << "no event came";
      return std::nullopt;
    }
    auto* what = std::get_if<What>(&event->what);
    if (what == nullptr) {
      ADD_FAILURE() << "another event came: " << event->what.index();
      return std::nullopt;
    }
    return std::move(*what);
  }
  [[nodiscard]] bool is_quiet() { return !events_.pop_until(deadline_after(Seconds(0))); }

 private:
  Mailbox<StreamEvent> events_{1000};
};

// Streams hold on to the inbox: they end when they want.
inline StreamListener ears_of(StreamId id, std::shared_ptr<TestInbox> inbox) {
  return listener_of(
      id, [inbox = std::move(inbox)](StreamEvent event) { inbox->put(std::move(event)); });
}

struct TestAcceptor {
  [[nodiscard]] Acceptor acceptor() const {
    return [inbox = inbox](StreamPtr stream) {
      inbox->put({.stream = 1, .what = StreamOpened(std::move(stream))});
      return ears_of(1, inbox);
    };
  }
  std::shared_ptr<TestInbox> inbox = std::make_shared<TestInbox>();
};

struct TransportUnderTest {
  std::string name;
  std::function<std::unique_ptr<Connector>(const Acceptor&)> make;
};

class TransportConformance : public ::testing::TestWithParam<TransportUnderTest> {
 protected:
  static Frame ping(std::uint64_t id) {
    Frame frame;
    frame.mutable_ping()->set_id(id);
    return frame;
  }
  void SetUp() override {
    connector_ = GetParam().make(acceptor_.acceptor());
    replica_stream_ = connector_->open(ears_of(2, replica_));
  }
  // The hub learns of a stream at the latest with its first frame.
  void open_with(std::uint64_t id) {
    replica_stream_->write(ping(id));
    hub_stream_ = hub().next<StreamOpened>().value();
    hub_stream_->read();
    EXPECT_EQ(hub().next<FrameArrived>()->ping().id(), id);
    EXPECT_TRUE(replica_->next<FrameWritten>());
  }
  TestInbox& hub() { return *acceptor_.inbox; }

  TestAcceptor acceptor_;
  std::shared_ptr<TestInbox> replica_ = std::make_shared<TestInbox>();
  std::unique_ptr<Connector> connector_;
  StreamPtr replica_stream_;
  StreamPtr hub_stream_;
};

TEST_P(TransportConformance, FramesPassBothWaysInOrder) {
  open_with(1);
  for (std::uint64_t id = 2; id < 100; ++id) {
    hub_stream_->read();
    replica_stream_->write(ping(id));
    EXPECT_EQ(hub().next<FrameArrived>()->ping().id(), id);
    EXPECT_TRUE(replica_->next<FrameWritten>());
    replica_stream_->read();
    hub_stream_->write(ping(1000 + id));
    EXPECT_EQ(replica_->next<FrameArrived>()->ping().id(), 1000 + id);
    EXPECT_TRUE(hub().next<FrameWritten>());
  }
}

TEST_P(TransportConformance, LargeFramesPassWhole) {
  open_with(1);
  Frame frame;
  std::string& data = *frame.mutable_chunk()->mutable_data();
  data.resize(1'000'000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  hub_stream_->read();
  replica_stream_->write(frame);
  EXPECT_EQ(hub().next<FrameArrived>()->chunk().data(), data);
}

TEST_P(TransportConformance, WhenTheHubClosesTheReplicaHears) {
  open_with(1);
  replica_stream_->read();
  hub_stream_->close();
  EXPECT_TRUE(hub().next<StreamClosed>());
  EXPECT_TRUE(replica_->next<StreamClosed>());
  EXPECT_TRUE(replica_->is_quiet());
}

TEST_P(TransportConformance, WhenTheReplicaClosesTheHubHears) {
  open_with(1);
  hub_stream_->read();
  replica_stream_->close();
  EXPECT_TRUE(replica_->next<StreamClosed>());
  EXPECT_TRUE(hub().next<StreamClosed>());
}

TEST_P(TransportConformance, ManyStreamsAtOnceDoNotMix) {
  open_with(1);
  auto other = std::make_shared<TestInbox>();
  const StreamPtr second = connector_->open(ears_of(3, other));
  second->write(ping(50));
  const StreamPtr at_hub = hub().next<StreamOpened>().value();
  at_hub->read();
  EXPECT_EQ(hub().next<FrameArrived>()->ping().id(), 50U);
  EXPECT_TRUE(other->next<FrameWritten>());
  second->read();
  at_hub->write(ping(51));
  EXPECT_EQ(other->next<FrameArrived>()->ping().id(), 51U);
  EXPECT_TRUE(replica_->is_quiet());
}

}  // namespace longhaul
