#include "longhaul/exchange/link_probe.h"

#include <algorithm>
#include <utility>

#include "longhaul/exchange/ask.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr Seconds kProbePatience{30.0};  // for anything at all to happen
constexpr Seconds kLongEnough{0.7};
constexpr std::uint64_t kFirstBytes = std::uint64_t{64} * 1024;
constexpr std::uint64_t kGrowth = 4;
constexpr int kPings = 5;
constexpr std::size_t kMostProbeEvents = 1024;

Error strange_answer() {
  return {ErrorCode::kCorruptPayload, "the hub gave no answer that makes sense"};
}

// Its rate is finite, however fast it was.
TransferSample sample_of(std::uint64_t bytes, Seconds duration) {
  return {.bytes = static_cast<double>(bytes),
          .duration = std::max(duration, Seconds(1e-6)),
          .is_probe = true};
}

}  // namespace

LinkProbe::LinkProbe(Connector& connector, const Clock& clock, Progress progress)
    : clock_(clock),
      progress_(std::move(progress)),
      events_(std::make_shared<Mailbox<StreamEvent>>(kMostProbeEvents)),
      stream_(connector.open(listener_of(1, inbox_of(events_)))) {}

LinkProbe::~LinkProbe() { stream_->close(); }

Result<ProbedLink> LinkProbe::measure(const std::string& name, const std::string& token) {
  LONGHAUL_TRY(open(name, token));
  ProbedLink link;
  const Seconds trip = LONGHAUL_TRY(round_trip());
  link.round_trip = trip;
  const auto up = grown("up", [this](std::uint64_t bytes) { return send_up(bytes); });
  if (!up.ok()) return up.error();
  link.up = *up;
  const auto down = grown("down", [this](std::uint64_t bytes) { return ask_down(bytes); });
  if (!down.ok()) return down.error();
  link.down = *down;
  return link;
}

Status LinkProbe::open(const std::string& name, const std::string& token) {
  Frame frame;
  frame.mutable_open_probe()->set_protocol(kProtocolVersion);
  frame.mutable_open_probe()->set_name(name);
  frame.mutable_open_probe()->set_token(token);
  LONGHAUL_TRY(write(std::move(frame)));
  const Frame answer = LONGHAUL_TRY(next_frame());
  return answer.has_probed() ? Status(Done{}) : strange_answer();
}

Result<Seconds> LinkProbe::round_trip() {
  Seconds least = kProbePatience;
  for (int i = 0; i < kPings; ++i) {
    const TimePoint start = clock_.now();
    Frame ping;
    ping.mutable_ping()->set_id(static_cast<std::uint64_t>(i));
    LONGHAUL_TRY(write(std::move(ping)));
    const Frame pong = LONGHAUL_TRY(next_frame());
    if (!pong.has_pong()) return strange_answer();
    least = std::min<Seconds>(least, clock_.now() - start);
  }
  return least;
}

// The rate of the last transfer, which was the largest: by then the connection is up to speed.
template <typename Transfer>
Result<TransferSample> LinkProbe::grown(const std::string& direction, Transfer transfer) {
  for (std::uint64_t bytes = kFirstBytes;; bytes *= kGrowth) {
    progress_(direction + ", " + bytes_text(bytes));
    Result<TransferSample> probed = transfer(bytes);
    if (!probed.ok() || probed->duration >= kLongEnough || bytes * kGrowth > kMostProbeBytes)
      return probed;
  }
}

Result<TransferSample> LinkProbe::send_up(std::uint64_t bytes) {
  for (std::uint64_t sent = 0; sent < bytes;) {
    Frame chunk = probe_chunk(bytes, sent);
    sent += chunk.chunk().data().size();
    LONGHAUL_TRY(write(std::move(chunk)));
  }
  const Frame answer = LONGHAUL_TRY(next_frame());
  if (!answer.has_probed() || !(answer.probed().duration_s() >= 0)) return strange_answer();
  return sample_of(answer.probed().bytes(), Seconds(answer.probed().duration_s()));
}

Result<TransferSample> LinkProbe::ask_down(std::uint64_t bytes) {
  Frame ask;
  ask.mutable_send_probe()->set_bytes(bytes);
  LONGHAUL_TRY(write(std::move(ask)));
  std::uint64_t received = 0;
  std::uint64_t first = 0;
  TimePoint first_at;
  while (received < bytes) {
    const Frame frame = LONGHAUL_TRY(next_frame());
    const std::uint64_t size = frame.chunk().data().size();
    if (!frame.has_chunk() || size == 0) return strange_answer();
    if (received == 0) {
      first = size;
      first_at = clock_.now();
    }
    received += size;
  }
  return sample_of(received - first, clock_.now() - first_at);
}

// One at a time: the next one follows when this one has gone.
Status LinkProbe::write(Frame frame) {
  stream_->write(std::move(frame));
  while (std::optional<StreamEvent> event = events_->pop_until(deadline_after(kProbePatience))) {
    if (std::holds_alternative<FrameWritten>(event->what)) return Done{};
    if (auto* closed = std::get_if<StreamClosed>(&event->what)) return *closed;
  }
  return Error{ErrorCode::kDeadline, "the hub takes nothing any more"};
}

Result<Frame> LinkProbe::next_frame() {
  stream_->read();
  while (std::optional<StreamEvent> event = events_->pop_until(deadline_after(kProbePatience))) {
    if (std::optional<Result<Frame>> answer = answer_in(*event)) return *std::move(answer);
  }
  return Error{ErrorCode::kDeadline, "the hub does not answer"};
}

}  // namespace longhaul
