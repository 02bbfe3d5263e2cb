// What a relay does when something ends, breaks or falls silent.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/link/relay.h"
#include "tests/link/loopback.h"

namespace longhaul {
namespace {

constexpr Seconds kFaultLatency{0.02};

// A relay with one connection through it.
class RelayFaults : public ::testing::Test {
 protected:
  static Deadline in_time() { return deadline_after(Seconds(30)); }
  static Deadline shortly() { return deadline_after(Seconds(0.15)); }

  static std::unique_ptr<Relay> start_relay(std::uint16_t port) {
    const auto rate = RateTrace::constant(Bandwidth::from_bits_per_second(40e6));
    return Relay::start(port, {.up = rate, .down = rate, .latency = kFaultLatency}).value();
  }

  Listener hub_;
  std::unique_ptr<Relay> relay_ = start_relay(hub_.port());
  Stream replica_ = dial(relay_->port());
  Stream far_ = hub_.accept(in_time());
  const std::vector<std::byte> bytes_ = random_bytes(300'000, 1);
};

TEST_F(RelayFaults, AnEndPassesBehindTheLastByteAndLeavesTheOtherDirectionOpen) {
  replica_.send_all(bytes_, in_time());
  replica_.end();
  EXPECT_EQ(far_.receive_all(bytes_.size(), in_time()), bytes_);
  EXPECT_EQ(far_.next(in_time()), Seen::kEnd);
  far_.send_all(bytes_, in_time());
  EXPECT_EQ(replica_.receive_all(bytes_.size(), in_time()), bytes_);
  far_.end();
  EXPECT_EQ(replica_.next(in_time()), Seen::kEnd);
}

TEST_F(RelayFaults, TheEndOfAQuietConnectionTakesALatency) {
  const auto start = std::chrono::steady_clock::now();
  replica_.end();
  EXPECT_EQ(far_.next(in_time()), Seen::kEnd);
  EXPECT_GE(Seconds(std::chrono::steady_clock::now() - start), kFaultLatency);
}

TEST_F(RelayFaults, AResetPasses) {
  replica_.reset();
  EXPECT_EQ(far_.next(in_time()), Seen::kReset);
}

TEST_F(RelayFaults, AResetOfTheHubPasses) {
  far_.reset();
  EXPECT_EQ(replica_.next(in_time()), Seen::kReset);
}

TEST_F(RelayFaults, ACutIsSilentAndNothingIsLostByIt) {
  std::jthread upward([this] { replica_.send_all(bytes_, in_time()); });
  std::jthread downward([this] { far_.send_all(bytes_, in_time()); });
  std::vector<std::byte> up = far_.receive_all(10'000, in_time());
  std::vector<std::byte> down = replica_.receive_all(10'000, in_time());
  relay_->cut();
  const std::uint64_t before_up = relay_->passed_up();
  const std::uint64_t before_down = relay_->passed_down();
  // What the kernel already had, and then nothing.
  const auto take_all = [](Stream& stream, std::vector<std::byte>& into) {
    std::array<std::byte, 4096> piece{};
    while (true) {
      const Received received = stream.receive(piece, shortly());
      if (received.seen != Seen::kBytes) return received.seen;
      into.insert(into.end(), piece.begin(), piece.begin() + static_cast<long>(received.bytes));
    }
  };
  EXPECT_EQ(take_all(far_, up), Seen::kNothing);
  EXPECT_EQ(take_all(replica_, down), Seen::kNothing);
  EXPECT_EQ(up.size(), before_up);
  EXPECT_EQ(down.size(), before_down);
  relay_->restore();
  for (auto [stream, have] : {std::pair(&far_, &up), std::pair(&replica_, &down)}) {
    const auto rest = stream->receive_all(bytes_.size() - have->size(), in_time());
    have->insert(have->end(), rest.begin(), rest.end());
  }
  EXPECT_EQ(up, bytes_);
  EXPECT_EQ(down, bytes_);
}

TEST_F(RelayFaults, NeitherEndNorResetPassesACut) {
  Stream another = dial(relay_->port());
  Stream far_of_another = hub_.accept(in_time());
  relay_->cut();
  replica_.end();
  another.reset();
  EXPECT_EQ(far_.next(shortly()), Seen::kNothing);
  EXPECT_EQ(far_of_another.next(shortly()), Seen::kNothing);
  relay_->restore();
  EXPECT_EQ(far_.next(in_time()), Seen::kEnd);
  EXPECT_EQ(far_of_another.next(in_time()), Seen::kReset);
}

TEST_F(RelayFaults, AConnectionMadeDuringACutIsMadeAfterIt) {
  relay_->cut();
  Stream late = dial(relay_->port());
  late.send_all(bytes_, in_time());
  EXPECT_EQ(late.next(shortly()), Seen::kNothing);
  EXPECT_FALSE(hub_.has_caller(shortly()));
  relay_->restore();
  Stream far_of_late = hub_.accept(in_time());
  EXPECT_EQ(far_of_late.receive_all(bytes_.size(), in_time()), bytes_);
}

TEST_F(RelayFaults, SurvivesManyCuts) {
  std::jthread upward([this] { replica_.send_all(bytes_, in_time()); });
  std::jthread cutter([this] {
    for (int i = 0; i < 100; ++i) {
      relay_->cut();
      relay_->cut();
      relay_->restore();
      relay_->restore();
    }
  });
  EXPECT_EQ(far_.receive_all(bytes_.size(), in_time()), bytes_);
  cutter.join();
  Stream late = dial(relay_->port());
  Stream far_of_late = hub_.accept(in_time());
  late.send_all(bytes_, in_time());
  EXPECT_EQ(far_of_late.receive_all(bytes_.size(), in_time()), bytes_);
}

TEST_F(RelayFaults, DroppedConnectionsAreResetOnBothSidesAndNewOnesWork) {
  replica_.send_all(bytes_, in_time());
  relay_->drop_connections();
  Seen seen = Seen::kBytes;
  while (seen == Seen::kBytes) seen = far_.next(in_time());
  EXPECT_EQ(seen, Seen::kReset);
  EXPECT_EQ(replica_.next(in_time()), Seen::kReset);
  Stream again = dial(relay_->port());
  Stream far_again = hub_.accept(in_time());
  again.send_all(bytes_, in_time());
  EXPECT_EQ(far_again.receive_all(bytes_.size(), in_time()), bytes_);
}

TEST_F(RelayFaults, AHubThatRefusesClosesTheConnection) {
  std::optional<Listener> gone(std::in_place);
  const std::uint16_t port = gone->port();
  gone.reset();
  const auto relay = start_relay(port);
  Stream replica = dial(relay->port());
  EXPECT_EQ(replica.next(in_time()), Seen::kReset);
}

TEST_F(RelayFaults, CanBeDestroyedWhileBusy) {
  std::jthread upward([this] { replica_.send_until(bytes_, in_time()); });
  std::jthread downward([this] { far_.send_until(bytes_, in_time()); });
  EXPECT_EQ(replica_.next(in_time()), Seen::kBytes);
  EXPECT_EQ(far_.next(in_time()), Seen::kBytes);
  const auto start = std::chrono::steady_clock::now();
  relay_.reset();
  EXPECT_LE(Seconds(std::chrono::steady_clock::now() - start), Seconds(1));
  Seen seen = Seen::kBytes;
  while (seen == Seen::kBytes) seen = replica_.next(in_time());
  EXPECT_NE(seen, Seen::kNothing);
}

TEST_F(RelayFaults, CanBeDestroyedWhileCut) {
  replica_.send_all(bytes_, in_time());
  relay_->cut();
  relay_.reset();
  Seen seen = Seen::kBytes;
  while (seen == Seen::kBytes) seen = far_.next(in_time());
  EXPECT_NE(seen, Seen::kNothing);
}

}  // namespace
}  // namespace longhaul
