// Real bytes over an emulated link: rate, latency, turns, content. Bounds from below hold on any
// machine; those from above leave room for a busy one, as shaper_properties_test proves the pacing.
#include "longhaul/link/relay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/link/loopback.h"

namespace longhaul {
namespace {

using SteadyClock = std::chrono::steady_clock;

LinkModel symmetric(double megabits, Seconds latency) {
  const auto rate = RateTrace::constant(Bandwidth::from_bits_per_second(megabits * 1e6));
  return {.up = rate, .down = rate, .latency = latency};
}

std::unique_ptr<Relay> relay_to(const Listener& hub, LinkModel link) {
  return Relay::start(hub.port(), link).value();
}

Deadline soon() { return deadline_after(Seconds(30)); }

// A connection through a relay, and who is at its ends.
struct Path {
  Path(const Relay& relay, Listener& hub) : replica(dial(relay.port())), far(hub.accept(soon())) {}
  Stream replica;
  Stream far;
};

Seconds round_trip(Path& path) {
  const auto ping = random_bytes(100, 1);
  const auto start = SteadyClock::now();
  path.replica.send_all(ping, soon());
  path.far.send_all(path.far.receive_all(ping.size(), soon()), soon());
  EXPECT_EQ(path.replica.receive_all(ping.size(), soon()), ping);
  return SteadyClock::now() - start;
}

TEST(Relay, PassesAtTheRateOfTheLink) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(20, Seconds(0.02)));
  Path path(*relay, hub);
  const auto bytes = random_bytes(2'500'000, 1);  // a second
  const auto start = SteadyClock::now();
  const std::jthread sender([&] { path.replica.send_all(bytes, soon()); });
  const auto received = path.far.receive_all(bytes.size(), soon());
  const Seconds taken = SteadyClock::now() - start - Seconds(0.02);
  EXPECT_EQ(received, bytes);
  RecordProperty("seconds", std::to_string(taken.count()));
  EXPECT_GE(taken.count(), 1.0);
  EXPECT_LE(taken.count(), 1.1);
  EXPECT_EQ(relay->passed_up(), bytes.size());
  EXPECT_EQ(relay->passed_down(), 0U);
}

TEST(Relay, HasARateOfItsOwnInEachDirection) {
  Listener hub;
  LinkModel link = symmetric(400, Seconds(0));
  link.down = RateTrace::constant(Bandwidth::from_bits_per_second(8e6));
  const auto relay = relay_to(hub, link);
  Path path(*relay, hub);
  const auto bytes = random_bytes(200'000, 1);  // 4 ms up, 200 ms down
  const auto start = SteadyClock::now();
  path.replica.send_all(bytes, soon());
  path.far.send_all(path.far.receive_all(bytes.size(), soon()), soon());
  EXPECT_EQ(path.replica.receive_all(bytes.size(), soon()), bytes);
  const Seconds taken = SteadyClock::now() - start;
  EXPECT_GE(taken.count(), 0.204);
  EXPECT_LE(taken.count(), 0.5);
}

TEST(Relay, DelaysAPingByTheLatencyOfEachWay) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(100, Seconds(0.1)));
  Path path(*relay, hub);
  Seconds shortest = round_trip(path);
  for (int i = 0; i < 4; ++i) shortest = std::min(shortest, round_trip(path));
  RecordProperty("seconds", std::to_string(shortest.count()));
  EXPECT_GE(shortest.count(), 0.2);
  EXPECT_LE(shortest.count(), 0.21);
}

TEST(Relay, APingDoesNotWaitBehindBulkData) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(4, Seconds(0.01)));
  Path ping(*relay, hub);
  Path bulk(*relay, hub);
  Path more_bulk(*relay, hub);
  const auto bytes = random_bytes(150'000, 1);  // with the other one: 600 ms
  const std::jthread sender([&] { bulk.replica.send_all(bytes, soon()); });
  const std::jthread another([&] { more_bulk.replica.send_all(bytes, soon()); });
  ASSERT_EQ(bulk.far.next(soon()), Seen::kBytes);  // now the line is busy
  std::vector<Seconds> times;
  for (int i = 0; i < 9; ++i) times.push_back(round_trip(ping));
  EXPECT_LT(relay->passed_up(), 2 * bytes.size());  // and still is
  std::ranges::sort(times);
  RecordProperty("seconds", std::to_string(times[4].count()));
  EXPECT_LE(times[4].count(), 0.05);  // the queue alone takes 130 ms
}

TEST(Relay, KeepsOrderAndContentOfEveryConnectionInBothDirections) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(80, Seconds(0.003)));
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    threads.emplace_back([path = Path(*relay, hub), seed]() mutable {
      const auto up = random_bytes(200'000, 2 * seed);
      const auto down = random_bytes(150'000, 2 * seed + 1);
      const auto send_in_pieces = [seed](Stream& stream, ByteView bytes) {
        std::mt19937_64 random(seed);
        while (!bytes.empty()) {
          const std::size_t piece = std::min<std::size_t>(bytes.size(), 1 + random() % 20'000);
          stream.send_all(bytes.first(piece), soon());
          bytes = bytes.subspan(piece);
        }
        stream.end();
      };
      const std::jthread upward([&] { send_in_pieces(path.replica, up); });
      const std::jthread downward([&] { send_in_pieces(path.far, down); });
      const std::jthread far_end([&] {
        EXPECT_EQ(path.far.receive_all(up.size(), soon()), up);
        EXPECT_EQ(path.far.next(soon()), Seen::kEnd);
      });
      EXPECT_EQ(path.replica.receive_all(down.size(), soon()), down);
      EXPECT_EQ(path.replica.next(soon()), Seen::kEnd);
    });
  }
}

TEST(Relay, HoldsTheSenderBackWhenTheReceiverDoesNotRead) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(80, Seconds(0)));
  Stream replica = dial(relay->port(), 32 * 1024);
  Stream far = hub.accept(soon());
  const auto bytes = random_bytes(8'000'000, 1);
  std::size_t sent = 0;
  std::size_t more = 0;
  do {
    more = replica.send_until(ByteView(bytes).subspan(sent), deadline_after(Seconds(0.2)));
    sent += more;
  } while (more > 0);
  EXPECT_LT(sent, 2'000'000U);  // kernel buffers of three sockets and two of the relay's
  const auto expected = std::vector(bytes.begin(), bytes.begin() + static_cast<long>(sent));
  EXPECT_EQ(far.receive_all(sent, soon()), expected);
}

TEST(Relay, ReceiversThatDoNotReadHoldUpNobodyElse) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(200, Seconds(0)));
  Path stuck(*relay, hub);
  Path free(*relay, hub);
  const auto bytes = random_bytes(8'000'000, 1);
  stuck.replica.send_until(bytes, deadline_after(Seconds(0.3)));
  EXPECT_LE(round_trip(free).count(), 1);
}

TEST(Relay, AQuietTimeIsNoCreditForWhatComesAfterIt) {
  Listener hub;
  const auto relay = relay_to(hub, symmetric(8, Seconds(0)));
  Path path(*relay, hub);
  const auto bytes = random_bytes(65'536, 1);
  path.replica.send_all(bytes, soon());
  path.far.receive_all(bytes.size(), soon());
  ASSERT_EQ(path.far.next(deadline_after(Seconds(0.2))), Seen::kNothing);
  const auto start = SteadyClock::now();
  path.replica.send_all(bytes, soon());
  path.far.receive_all(bytes.size(), soon());
  EXPECT_GE(Seconds(SteadyClock::now() - start).count(), 0.0655);
}

TEST(Relay, FollowsItsTraceFromItsRestart) {
  Listener hub;
  LinkModel link = symmetric(8, Seconds(0));
  link.up = RateTrace({{.duration = Seconds(0.3), .rate = {}},
                       {.duration = Seconds(60), .rate = {.bytes_per_second = 1e6}}});
  const auto relay = relay_to(hub, link);
  Path path(*relay, hub);
  round_trip(path);  // the rate has set in
  const auto start = SteadyClock::now();
  relay->restart_trace();
  round_trip(path);
  const Seconds taken = SteadyClock::now() - start;
  EXPECT_GE(taken.count(), 0.3);
  EXPECT_LE(taken.count(), 0.6);
}

TEST(Relay, SaysWhatIsWrongWithItsTarget) {
  const auto relay = Relay::start(1, symmetric(1, Seconds(0)), "hub");
  ASSERT_FALSE(relay.ok());
  EXPECT_EQ(relay.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(Relay::start(0, symmetric(1, Seconds(0))).ok());
}

}  // namespace
}  // namespace longhaul
