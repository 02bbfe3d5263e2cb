// What the hub knows of links, and what it does to know it.
#include <gtest/gtest.h>

#include "longhaul/hub/hub_core.h"
#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::desk_options;
using testing::HubDesk;

constexpr double kLinkRate = 1e5;  // bytes per second

class HubLinks : public ::testing::Test {
 protected:
  explicit HubLinks(const std::string& recipe = "deco") : desk_(starts_with_one_of_two(recipe)) {}
  static HubOptions starts_with_one_of_two(const std::string& recipe) {
    HubOptions options = desk_options(recipe);
    options.start_with = 1;
    return options;
  }
  void SetUp() override {
    Frame frame = testing::join_frame("a");
    frame.mutable_join()->set_compute_s(0.1);
    joined_ = desk_.join(frame);
    probe_up(16384);
    report_down(65536);
    desk_.send_model(joined_);
    ASSERT_TRUE(desk_.core.status().is_started);
    listen();
  }

  void probe_up(std::size_t bytes, double rate = kLinkRate) {
    OutgoingCargo cargo;
    cargo.add({.cargo = Cargo::kProbe}, std::make_shared<const ByteBuffer>(bytes, std::byte{}));
    while (!cargo.is_empty()) {
      const Frame chunk = cargo.next_chunk();
      desk_.advance(Seconds(static_cast<double>(chunk.chunk().data().size()) / rate));
      desk_.hear(joined_.lane, chunk);
    }
  }
  // Of a state that is gone, and of a kilobyte, which takes 10 ms at the rate of the link.
  void send_update(Seconds duration) {
    OutgoingCargo cargo;
    cargo.add({.cargo = Cargo::kUpdate, .restarts = 9},
              std::make_shared<const ByteBuffer>(1074, std::byte{}));
    desk_.hear(joined_.lane, cargo.next_chunk());
    desk_.advance(duration);
    desk_.hear(joined_.lane, cargo.next_chunk());
  }
  void report_down(double bytes) {
    v1::Report report;
    report.set_round_trip_s(0.02);
    report.add_down()->set_bytes(bytes);
    report.mutable_down(0)->set_duration_s(bytes / kLinkRate);
    report.set_probes(told_);
    desk_.report(joined_, report);
  }
  // For so long nothing comes but reports of nothing.
  void wait(Seconds time) {
    for (Seconds waited{}; waited < time; waited += Seconds(0.5)) {
      v1::Report report;
      report.set_probes(told_);
      desk_.report(joined_, report);
      desk_.advance(Seconds(0.5));
      listen();
    }
  }
  // To what the hub asks for and sends. It is answered, if `answers_`.
  void listen() {
    while (const auto frame = joined_.control.stream->take(Frame::kSendProbe)) {
      asked_.push_back(frame->send_probe().bytes());
      if (answers_) desk_.send(joined_, {.cargo = Cargo::kProbe}, ByteBuffer(1, std::byte{}));
    }
    while (const auto frame = joined_.lane.stream->take(Frame::kChunk)) {
      const v1::Chunk& chunk = frame->chunk();
      if (chunk.cargo() != v1::CARGO_PROBE) continue;
      sent_ += chunk.data().size();
      if (answers_) told_ = chunk.step() + 1;
    }
  }
  [[nodiscard]] double up() const {
    return desk_.core.status().replicas.at("a").measured.up.typical()->bytes_per_second;
  }

  HubDesk desk_;
  HubDesk::Joined joined_;
  bool answers_ = true;
  std::uint64_t told_ = 0;            // probes that have come down
  std::vector<std::uint64_t> asked_;  // for a probe, by its bytes
  std::size_t sent_ = 0;              // bytes of probes
};

TEST_F(HubLinks, AreNotProbedWhileTransfersTellEnough) {
  asked_.clear();
  sent_ = 0;
  for (int i = 0; i < 20; ++i) {
    probe_up(16384);
    report_down(16384);
    wait(Seconds(1));
  }
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(sent_, 0U);
}

TEST_F(HubLinks, AreProbedEveryFiveSecondsWhereNothingTells) {
  sent_ = 0;
  wait(Seconds(17));
  EXPECT_EQ(asked_, std::vector<std::uint64_t>(3, 5000)) << "50 ms of the line each";
  EXPECT_EQ(sent_, 3U * 5000);
}

TEST_F(HubLinks, AreProbedOnceWhileNoProbeHasCome) {
  answers_ = false;
  sent_ = 0;
  wait(Seconds(60));
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_EQ(sent_, 5000U);
}

// At a tenth of the rate: what a busy machine sees of a transfer of 5 ms.
TEST_F(HubLinks, ShortTransfersTellNothing) {
  for (int i = 0; i < 11; ++i) {
    send_update(Seconds(0.005));
    wait(Seconds(0.5));
  }
  EXPECT_NEAR(up(), kLinkRate, 1);
  EXPECT_EQ(asked_.size(), 1U);
}

// They may be what a busy machine sees, or a link that has become slow: a probe tells.
TEST_F(HubLinks, AreProbedSoonWhereShortTransfersAreSlow) {
  for (int i = 0; i < 4; ++i) {
    send_update(Seconds(0.1));
    wait(Seconds(0.5));
  }
  EXPECT_NEAR(up(), kLinkRate, 1);
  EXPECT_GE(asked_.size(), 3U);
}

TEST_F(HubLinks, AProbeEndsADoubt) {
  answers_ = false;
  for (std::size_t probes = 1; probes <= 2; ++probes) {
    send_update(Seconds(0.1));
    wait(Seconds(1));
    ASSERT_EQ(asked_.size(), probes);
    probe_up(asked_.back(), kLinkRate / 10);
  }
  EXPECT_NEAR(up(), kLinkRate / 10, kLinkRate / 1000) << "the link has become slow indeed";
  wait(Seconds(4));
  EXPECT_EQ(asked_.size(), 2U);
  wait(Seconds(2));
  EXPECT_EQ(asked_.size(), 3U) << "five seconds after the last";
}

// Planning would wait for ever for one that never opens its lanes.
TEST_F(HubLinks, OfThoseWhoAreNotInYetDoNotMatter) {
  const int before = desk_.core.status().plan.delay_steps;
  const HubDesk::Peer half_way = desk_.open();
  desk_.hear(half_way, testing::join_frame("b"));
  ASSERT_EQ(desk_.core.status().sessions, 2U);
  v1::Report report;
  report.set_round_trip_s(2);
  report.set_probes(told_);
  desk_.report(joined_, report);
  desk_.update(joined_, 0, testing::dense_payload(1));
  EXPECT_GT(desk_.core.status().plan.delay_steps, before);
}

class UnplannedHubLinks : public HubLinks {
 protected:
  UnplannedHubLinks() : HubLinks("d-sgd") {}
};

// Computing takes 0.1 s and the link 20 ms: the rest is what a round costs.
TEST_F(UnplannedHubLinks, DoNotExplainAllOfAStep) {
  EXPECT_EQ(desk_.core.status().step_time, Seconds(0)) << "not known yet";
  for (std::uint64_t step = 0; step < 40; ++step) {
    desk_.advance(Seconds(0.3));
    desk_.update(joined_, step, testing::dense_payload(1));
    if (step > 0) continue;
    EXPECT_LT(desk_.core.status().predicted_step_time.count(), 0.13);
  }
  EXPECT_NEAR(desk_.core.status().step_time.count(), 0.3, 1e-6);
  EXPECT_NEAR(desk_.core.status().predicted_step_time.count(), 0.3, 1e-6);
}

TEST_F(UnplannedHubLinks, AreNeverProbed) {
  sent_ = 0;
  wait(Seconds(30));
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(sent_, 0U);
}

}  // namespace
}  // namespace longhaul
