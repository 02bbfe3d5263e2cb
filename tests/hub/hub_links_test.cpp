// What the hub knows of links, and what it does to know it.
#include <gtest/gtest.h>

#include "longhaul/hub/hub_core.h"
#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::desk_setup;
using testing::HubDesk;

constexpr double kLinkRate = 1e5;  // bytes per second

class HubLinks : public ::testing::Test {
 protected:
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

  // At the rate of the link.
  void probe_up(std::size_t bytes) {
    OutgoingCargo cargo;
    cargo.add({.cargo = Cargo::kProbe}, std::make_shared<const ByteBuffer>(bytes, std::byte{}));
    while (!cargo.is_empty()) {
      const Frame chunk = cargo.next_chunk();
      desk_.advance(Seconds(static_cast<double>(chunk.chunk().data().size()) / kLinkRate));
      desk_.hear(joined_.lane, chunk);
    }
  }
  void report_down(double bytes) {
    v1::Report report;
    report.set_round_trip_s(0.02);
    report.add_down()->set_bytes(bytes);
    report.mutable_down(0)->set_duration_s(bytes / kLinkRate);
    desk_.report(joined_, report);
  }
  // For so long nothing comes but reports of nothing. What the hub asked for and sent meanwhile.
  void wait(Seconds time) {
    for (Seconds waited{}; waited < time; waited += Seconds(0.5)) {
      desk_.report(joined_, {});
      desk_.advance(Seconds(0.5));
    }
    listen();
  }
  void listen() {
    asked_.clear();
    while (const auto frame = joined_.control.stream->take(Frame::kSendProbe))
      asked_.push_back(frame->send_probe().bytes());
    sent_ = 0;
    while (const auto frame = joined_.lane.stream->take(Frame::kChunk)) {
      if (frame->chunk().cargo() == v1::CARGO_PROBE) sent_ += frame->chunk().data().size();
    }
  }
  [[nodiscard]] double up() const {
    return desk_.core.status().replicas.at("a").measured.up.typical()->bytes_per_second;
  }

  HubDesk desk_{desk_setup("deco", 1)};
  HubDesk::Joined joined_;
  std::vector<std::uint64_t> asked_;  // for a probe, by its bytes
  std::size_t sent_ = 0;              // bytes of probes
};

TEST_F(HubLinks, AreNotProbedWhileTransfersTellEnough) {
  for (int i = 0; i < 20; ++i) {
    probe_up(16384);
    report_down(16384);
    wait(Seconds(1));
    EXPECT_TRUE(asked_.empty());
    EXPECT_EQ(sent_, 0U);
  }
}

TEST_F(HubLinks, AreProbedEveryFiveSecondsWhereNothingTells) {
  wait(Seconds(17));
  EXPECT_EQ(asked_, std::vector<std::uint64_t>(3, 5000)) << "50 ms of the line each";
  EXPECT_EQ(sent_, 3U * 5000);
}

TEST_F(HubLinks, ShortTransfersLeaveALinkUntold) {
  for (int i = 0; i < 12; ++i) {
    probe_up(1500);  // timed over 476 bytes: 5 ms
    report_down(500);
    wait(Seconds(0.5));
  }
  EXPECT_NEAR(up(), kLinkRate, 1);
  wait(Seconds(1));
  EXPECT_GE(desk_.core.status().replicas.at("a").measured.down.typical()->bytes_per_second, 99e3);
  wait(Seconds(5));
  EXPECT_EQ(asked_.size(), 1U);
}

TEST(HubLinksWithoutPlanner, AreNeverProbed) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  for (int i = 0; i < 30; ++i) {
    desk.report(all[0], {});
    desk.report(all[1], {});
    desk.advance(Seconds(0.5));
  }
  EXPECT_FALSE(all[0].control.stream->take(Frame::kSendProbe));
}

}  // namespace
}  // namespace longhaul
