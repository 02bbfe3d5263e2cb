#include "longhaul/hub/status_pace.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/base/fake_clock.h"

namespace longhaul {
namespace {

constexpr int kLooksPerSecond = 10;

// Looks at a status ten times a second.
class Looking : public ::testing::Test {
 protected:
  int printed_in(int seconds) {
    int printed = 0;
    for (int i = 0; i < seconds * kLooksPerSecond; ++i) {
      clock_.advance(Seconds(1.0 / kLooksPerSecond));
      advance_the_run();
      printed += pace_.is_due(status_, clock_.now()) ? 1 : 0;
    }
    return printed;
  }
  void advance_the_run() {
    ++status_.next_round;
    for (auto& [name, replica] : status_.replicas) {
      ++replica.step;
      replica.bytes_up += 1000;
    }
  }

  FakeClock clock_;
  HubStatus status_{.is_started = true, .replicas = {{"a", {.is_connected = true}}, {"b", {}}}};
  StatusPace pace_{Seconds(10.0)};
};

TEST_F(Looking, AQuietHourHasOneStatusEveryTenSeconds) {
  EXPECT_TRUE(pace_.is_due(status_, clock_.now()));
  const int printed = printed_in(3600);
  EXPECT_GE(printed, 355);
  EXPECT_LE(printed, 365);
}

TEST_F(Looking, TellsOfWhatMattersWithinASecond) {
  (void)printed_in(100);
  using Change = std::function<void(HubStatus&)>;
  for (const Change& change :
       std::vector<Change>{[](HubStatus& status) { status.replicas["b"].is_connected = true; },
                           [](HubStatus& status) { status.replicas["b"].is_enrolled = true; },
                           [](HubStatus& status) { status.replicas["c"] = {}; },
                           [](HubStatus& status) { ++status.refused; },
                           [](HubStatus& status) { ++status.strangers; },
                           [](HubStatus& status) { ++status.rejected; },
                           [](HubStatus& status) { ++status.mismatches; },
                           [](HubStatus& status) { status.is_finished = true; }}) {
    change(status_);
    EXPECT_EQ(printed_in(1), 1);
  }
}

TEST_F(Looking, ShowsHowARunGoesOnSoonAfterSomethingHappened) {
  (void)printed_in(100);
  ++status_.refused;
  EXPECT_EQ(printed_in(1), 1);  // and then after 1, 2, 4, 8 seconds
  EXPECT_EQ(printed_in(15), 4);
}

TEST_F(Looking, NewsWithoutEndIsToldOnceASecond) {
  int printed = 0;
  for (int i = 0; i < 60 * kLooksPerSecond; ++i) {
    ++status_.strangers;
    clock_.advance(Seconds(1.0 / kLooksPerSecond));
    printed += pace_.is_due(status_, clock_.now()) ? 1 : 0;
  }
  EXPECT_LE(printed, 60);
}

TEST_F(Looking, MayBeAskedForMore) {
  StatusPace often(Seconds(0.1));
  pace_ = often;
  EXPECT_GE(printed_in(10), 95);
}

}  // namespace
}  // namespace longhaul
