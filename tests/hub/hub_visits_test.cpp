// Those who only look at a hub: they are told, and the run does not notice.
#include <gtest/gtest.h>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::desk_options;
using testing::HubDesk;

Frame ask_status(const std::string& name) {
  Frame frame;
  frame.mutable_ask_status()->set_protocol(kProtocolVersion);
  frame.mutable_ask_status()->set_name(name);
  return frame;
}

Frame open_probe(const std::string& name) {
  Frame frame;
  frame.mutable_open_probe()->set_protocol(kProtocolVersion);
  frame.mutable_open_probe()->set_name(name);
  return frame;
}

Frame send_probe(std::uint64_t bytes) {
  Frame frame;
  frame.mutable_send_probe()->set_bytes(bytes);
  return frame;
}

// Bytes of chunks that were written and not taken yet.
std::uint64_t chunk_bytes(const HubDesk::Peer& peer) {
  std::uint64_t bytes = 0;
  while (const auto frame = peer.stream->take(Frame::kChunk)) bytes += frame->chunk().data().size();
  return bytes;
}

TEST(HubVisits, TellWhoIsThereAndWhatWasRefused) {
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  Frame frame = testing::join_frame("third");
  EXPECT_TRUE(desk.refusal(frame));
  const HubDesk::Peer peer = desk.open();
  desk.hear(peer, ask_status("someone"));
  const auto answer = peer.stream->take(Frame::kStatusReport);
  ASSERT_TRUE(answer);
  const v1::StatusReport& report = answer->status_report();
  EXPECT_TRUE(report.is_started());
  EXPECT_EQ(report.elements(), testing::kDeskElements);
  EXPECT_EQ(report.replicas(), 2U);
  EXPECT_EQ(report.refused(), 1U);
  ASSERT_EQ(report.members_size(), 2);
  EXPECT_EQ(report.members(1).name(), "replica-1");
  EXPECT_TRUE(report.members(1).is_enrolled());
}

TEST(HubVisits, AreOnlyForThoseWhoAreInvited) {
  HubOptions options = desk_options();
  options.admit = [](const std::string& name, const std::string&, const std::string&) -> Status {
    if (name == "friend") return Done{};
    return Error{ErrorCode::kMismatch, "unknown"};
  };
  HubDesk desk(std::move(options));
  EXPECT_FALSE(desk.refusal(ask_status("friend")));
  EXPECT_TRUE(desk.refusal(ask_status("stranger")));
  EXPECT_TRUE(desk.refusal(ask_status("a\x1b[2Jb")));
  EXPECT_TRUE(desk.refusal(open_probe("stranger")));
  EXPECT_EQ(desk.core.status().refused, 3U);
}

TEST(HubVisits, AProbeIsSentWhatItAsksForAndToldWhatCame) {
  HubDesk desk;
  const HubDesk::Peer peer = desk.open();
  desk.hear(peer, open_probe("probe"));
  ASSERT_TRUE(peer.stream->take(Frame::kProbed));
  Frame ping;
  ping.mutable_ping()->set_id(9);
  desk.hear(peer, ping);
  const auto pong = peer.stream->take(Frame::kPong);
  ASSERT_TRUE(pong);
  EXPECT_EQ(pong->pong().id(), 9U);
  desk.hear(peer, send_probe(1'000'000));
  EXPECT_EQ(chunk_bytes(peer), 1'000'000U);
  const Frame first = probe_chunk(200'000, 0);
  for (std::uint64_t sent = 0; sent < 200'000;) {
    const Frame chunk = probe_chunk(200'000, sent);
    sent += chunk.chunk().data().size();
    desk.hear(peer, chunk);
    desk.advance(Seconds(0.1));
  }
  const auto probed = peer.stream->take(Frame::kProbed);
  ASSERT_TRUE(probed);
  EXPECT_EQ(probed->probed().bytes(), 200'000U - first.chunk().data().size());
  EXPECT_NEAR(probed->probed().duration_s(), 1.5, 1e-9);
  EXPECT_EQ(desk.core.status().rejected, 0U);
}

TEST(HubVisits, AProbeThatWantsTooMuchIsClosed) {
  Frame outside = probe_chunk(1000, 0);
  outside.mutable_chunk()->set_total(10);
  for (const Frame& frame : {send_probe(kMostProbeBytes + 1), send_probe(0), outside, Frame()}) {
    HubDesk desk;
    const HubDesk::Peer peer = desk.open();
    desk.hear(peer, open_probe("probe"));
    desk.hear(peer, frame);
    EXPECT_TRUE(peer.is_gone());
    EXPECT_EQ(desk.core.status().rejected, 1U);
  }
}

TEST(HubVisits, ProbesAreFewAndGoWhenTheyAreSilent) {
  HubDesk desk;
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(desk.refusal(open_probe("probe")));
  const auto refused = desk.refusal(open_probe("probe"));
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->is_final());
  desk.advance(Seconds(6));
  EXPECT_FALSE(desk.refusal(open_probe("probe")));
}

}  // namespace
}  // namespace longhaul
