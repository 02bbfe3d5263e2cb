#include "longhaul/hub/link_book.h"

#include <gtest/gtest.h>

#include "tests/hub/peer_fixture.h"

namespace longhaul {
namespace {

class LinkBookTest : public ::testing::Test {
 protected:
  LinkBookTest() { book.begin("a", 0.5); }

  // The link is known in both directions.
  void measure() {
    book.take_arrival(
        "a", {.id = {.cargo = Cargo::kProbe}, .timed_bytes = 100'000, .duration = Seconds(0.1)},
        now);
    v1::Report report;
    report.set_round_trip_s(0.2);
    report.set_probes(1);
    v1::Sample& sample = *report.add_down();
    sample.set_bytes(100'000);
    sample.set_duration_s(0.1);
    book.take_report("a", report, now);
  }
  std::optional<std::uint64_t> asked() {
    const auto frame = stream->take(Frame::kSendProbe);
    stream->is_writing = false;
    peer.on_control_written();
    return frame ? std::optional(frame->send_probe().bytes()) : std::nullopt;
  }

  LinkBook book{true};
  Roster roster{{.id = 1}, {}, 1, {}};
  testing::HandStreamPtr stream = std::make_shared<testing::HandStream>();
  Peer& peer = testing::add_peer(roster, "a", 1, stream);
  TimePoint now = time_after(TimePoint{}, Seconds(100));
};

TEST_F(LinkBookTest, HasNoConditionsWhileAMemberIsNotKnown) {
  roster.enroll(peer);
  EXPECT_TRUE(book.of_members(roster).empty());
  EXPECT_TRUE(book.wants_first_probe("a"));
  measure();
  ASSERT_EQ(book.of_members(roster).size(), 1U);
  EXPECT_DOUBLE_EQ(book.of_members(roster)[0].latency.count(), 0.1);
  EXPECT_FALSE(book.wants_first_probe("a"));
}

TEST_F(LinkBookTest, AsksForOneProbeAtATime) {
  measure();
  now = time_after(now, Seconds(6));
  book.probe_idle(peer, 1 << 20, now);
  EXPECT_TRUE(asked());
  now = time_after(now, Seconds(6));
  book.probe_idle(peer, 1 << 20, now);
  EXPECT_FALSE(asked());
  measure();
  now = time_after(now, Seconds(6));
  book.probe_idle(peer, 1 << 20, now);
  EXPECT_TRUE(asked());
}

TEST_F(LinkBookTest, DoesNotProbeALinkThatWasMeasuredJustNow) {
  measure();
  book.probe_idle(peer, 1 << 20, time_after(now, Seconds(1)));
  EXPECT_FALSE(asked());
}

TEST_F(LinkBookTest, CountsProbesAnewOnAnotherConnection) {
  measure();
  now = time_after(now, Seconds(6));
  book.probe_idle(peer, 1 << 20, now);
  EXPECT_TRUE(asked());
  book.begin("a", 0);
  now = time_after(now, Seconds(6));
  book.probe_idle(peer, 1 << 20, now);
  EXPECT_TRUE(asked());
  EXPECT_DOUBLE_EQ(book.measured("a").compute.typical().count(), 0.5);
}

TEST_F(LinkBookTest, WithoutAPlannerEveryoneWhoIsConnectedCanStart) {
  const LinkBook unplanned(false);
  EXPECT_EQ(unplanned.of_starters(roster).size(), 1U);
  EXPECT_TRUE(book.of_starters(roster).empty());
}

TEST_F(LinkBookTest, IgnoresSamplesThatCannotBe) {
  v1::Report report;
  report.add_down()->set_bytes(-1);
  report.set_round_trip_s(-2);
  book.take_report("a", report, now);
  EXPECT_FALSE(book.measured("a").down.typical());
  EXPECT_EQ(book.measured("a").latency.count(), 0);
}

}  // namespace
}  // namespace longhaul
