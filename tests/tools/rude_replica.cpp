// A replica that lies, for tests of what a hub does about it. It speaks the protocol over real
// sockets, trains nothing, and tells as JSON lines what happened.
//
//   longhaul_rude_replica --hub HOST:PORT --name NAME --lie nan
#include <CLI/CLI.hpp>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/session/hub_access.h"
#include "longhaul/telemetry/event_log.h"
#include "longhaul/transport/cargo.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostEvents = 1024;
constexpr Seconds kPingEvery{1.0};
constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 40U;
constexpr StreamId kControl = 1;
constexpr StreamId kLane = 2;

// In the join, the initial model, or every update.
const std::vector<std::string> kLies{
    "none",     "protocol", "wire",  "token",   "name",    "elements", "lanes",   "model", "nan",
    "infinity", "digest",   "count", "length",  "size",    "twice",    "outside", "ahead", "frame",
    "first",    "empty",    "flood", "garbage", "nothing", "session",  "crumbs"};

struct RudeArguments {
  std::string hub;
  std::string invite;
  std::string name = "rude";
  std::string lie = "none";
  std::uint64_t elements = 1000;
  std::size_t times = 1;      // connections, one after the other
  std::uint64_t rounds = 10;  // to take part in, on each
};

ByteBuffer dense_update(std::uint64_t elements, float value) {
  const std::vector<float> values(elements, value);
  const std::span bytes = std::as_bytes(std::span(values));
  const std::array<ByteBuffer, 1> body{ByteBuffer(bytes.begin(), bytes.end())};
  return seal_payload({.elements = elements}, body);
}

class RudeReplica {
 public:
  RudeReplica(const RudeArguments& arguments, HubAccess access)
      : arguments_(arguments),
        access_(std::move(access)),
        connector_(make_grpc_connector(access_.address, access_.tls)) {}

  void connect_once() {
    events_ = std::make_shared<Mailbox<StreamEvent>>(kMostEvents);
    control_ = connector_->open(listener_of(kControl, inbox_of(events_)));
    writing_ = false;
    outgoing_.clear();
    restarts_ = 0;
    done_ = 0;
    send(first_frame());
    control_->read();
    is_over_ = false;
    while (!is_over_) {
      std::optional<StreamEvent> event = events_->pop_until(deadline_after(kPingEvery));
      if (!event) {
        Frame ping;
        ping.mutable_ping()->set_id(1);
        send(std::move(ping));
      } else {
        on_event(std::move(*event));
      }
    }
    control_->close();
    if (lane_) lane_->close();
    lane_.reset();
  }

 private:
  [[nodiscard]] bool lies(std::string_view what) const { return arguments_.lie == what; }

  Frame first_frame() {
    Frame frame;
    if (lies("first")) return frame;
    if (lies("session")) {
      frame.mutable_open_lane()->set_session(12345);
      return frame;
    }
    v1::Join& join = *frame.mutable_join();
    join.set_protocol(kProtocolVersion + (lies("protocol") ? 1 : 0));
    join.set_wire(kWireVersion + (lies("wire") ? 1 : 0));
    join.set_name(lies("name") ? "../" + access_.name : access_.name);
    join.set_token(lies("token") ? std::string(64, '0') : access_.token);
    join.set_elements(lies("elements") ? kAbsurd / 8 : arguments_.elements);
    join.set_lanes(lies("lanes") ? 1'000'000 : 1);
    join.set_is_fresh(true);
    join.set_initial(digest_of(std::vector<float>(arguments_.elements, 1.0F)));
    return frame;
  }

  void on_event(StreamEvent event) {
    if (auto* closed = std::get_if<StreamClosed>(&event.what)) {
      print_event("closed", {{"why", closed->message}});
      is_over_ = true;
    } else if (std::holds_alternative<FrameWritten>(event.what)) {
      event.stream == kControl ? on_control_written() : on_lane_written();
    } else if (auto* arrived = std::get_if<FrameArrived>(&event.what)) {
      if (event.stream == kControl) on_control(*arrived);
      if (!is_over_) (event.stream == kControl ? control_ : lane_)->read();
    }
  }

  void on_control(const Frame& frame) {
    if (frame.has_refused()) {
      print_event("refused",
                  {{"why", frame.refused().why()}, {"is_final", frame.refused().is_final()}});
      is_over_ = true;
    } else if (frame.has_goodbye()) {
      print_event("goodbye", {{"why", frame.goodbye().why()}});
      is_over_ = true;
    } else if (frame.has_welcome()) {
      print_event("welcome", {{"slot", frame.welcome().slot()}});
      if (lies("nothing")) return;
      lane_ = connector_->open(listener_of(kLane, inbox_of(events_)));
      is_lane_busy_ = true;
      Frame open;
      open.mutable_open_lane()->set_session(frame.welcome().session());
      lane_->write(std::move(open));
      lane_->read();
    } else if (frame.has_send_state()) {
      const std::vector<float> model(arguments_.elements, lies("model") ? 2.0F : 1.0F);
      const std::span bytes = std::as_bytes(std::span(model));
      send_cargo({.cargo = Cargo::kSnapshot}, ByteBuffer(bytes.begin(), bytes.end()));
    } else if (frame.has_restart()) {
      ++restarts_;
      Frame report;
      report.mutable_report()->set_step(frame.restart().first_step());
      report.mutable_report()->set_restarts(restarts_);
      send(std::move(report));
    } else if (frame.has_enrolled()) {
      print_event("enrolled", {{"from_step", frame.enrolled().from().step()}});
      lie_about(frame.enrolled().from().step());
    } else if (frame.has_closed()) {
      on_closed(frame.closed());
    } else if (frame.has_finish()) {
      last_step_ = frame.finish().last_step();
    }
  }

  void on_closed(const v1::Closed& closed) {
    print_event("round", {{"step", closed.step()}, {"is_own_in", closed.has_own()}});
    ++done_;
    if (done_ >= arguments_.rounds || closed.step() >= last_step_) {
      print_event("done", {{"rounds", done_}});
      is_over_ = true;
      return;
    }
    lie_about(closed.step() + 1);
  }

  void lie_about(std::uint64_t step) {
    if (lies("flood")) {
      for (std::uint64_t i = 0; i < 100; ++i)
        send_chunk({.cargo = Cargo::kUpdate, .step = step + i}, 3900, 0, 1);
      return;
    }
    if (lies("garbage")) {
      Frame chunk;
      chunk.mutable_chunk()->set_cargo(static_cast<v1::Cargo>(77));
      return send_on_lane(std::move(chunk));
    }
    const TransferId id{.step = lies("ahead") ? step + 1'000'000 : step, .restarts = restarts_};
    if (lies("size")) return send_chunk(id, kAbsurd, 0, 1000);
    if (lies("crumbs")) return send_chunk(id, 3000, 0, 1);
    if (lies("outside")) return send_chunk(id, 1000, 999, 1000);
    if (lies("twice")) {
      send_chunk(id, 3000, 0, 2000);
      return send_chunk(id, 3000, 1000, 2000);
    }
    if (lies("frame")) return send_chunk(id, 4'000'000, 0, 4'000'000);
    send_cargo(id, update());
  }

  ByteBuffer update() const {
    if (lies("empty")) return {};
    const std::uint64_t elements = arguments_.elements;
    if (lies("nan")) return dense_update(elements, std::numeric_limits<float>::quiet_NaN());
    if (lies("infinity")) return dense_update(elements, std::numeric_limits<float>::infinity());
    if (lies("count")) return dense_update(elements + 1, 0.1F);
    ByteBuffer bytes = dense_update(elements, 0.0F);
    if (lies("digest")) bytes.back() ^= std::byte{1};
    if (lies("length")) bytes.pop_back();
    return bytes;
  }

  void send_chunk(const TransferId& id, std::uint64_t total, std::uint64_t offset,
                  std::size_t bytes) {
    Frame frame;
    v1::Chunk& chunk = *frame.mutable_chunk();
    chunk.set_cargo(v1::CARGO_UPDATE);
    chunk.set_step(id.step);
    chunk.set_restarts(id.restarts);
    chunk.set_total(total);
    chunk.set_offset(offset);
    chunk.set_data(std::string(bytes, 'x'));
    send_on_lane(std::move(frame));
  }
  void send_cargo(const TransferId& id, ByteBuffer bytes) {
    OutgoingCargo cargo;
    cargo.add(id, std::make_shared<const ByteBuffer>(std::move(bytes)));
    while (!cargo.is_empty()) send_on_lane(cargo.next_chunk());
  }
  void send_on_lane(Frame frame) {
    if (is_lane_busy_) return lane_outgoing_.push_back(std::move(frame));
    is_lane_busy_ = true;
    lane_->write(std::move(frame));
  }
  void on_lane_written() {
    is_lane_busy_ = false;
    if (lane_outgoing_.empty()) return;
    Frame next = std::move(lane_outgoing_.front());
    lane_outgoing_.pop_front();
    send_on_lane(std::move(next));
  }
  void send(Frame frame) {
    if (writing_) return outgoing_.push_back(std::move(frame));
    writing_ = true;
    control_->write(std::move(frame));
  }
  void on_control_written() {
    writing_ = false;
    if (outgoing_.empty()) return;
    Frame next = std::move(outgoing_.front());
    outgoing_.pop_front();
    send(std::move(next));
  }

  const RudeArguments& arguments_;
  HubAccess access_;
  std::unique_ptr<Connector> connector_;
  std::shared_ptr<Mailbox<StreamEvent>> events_;
  StreamPtr control_;
  StreamPtr lane_;
  std::deque<Frame> outgoing_;
  std::deque<Frame> lane_outgoing_;
  bool writing_ = false;
  bool is_lane_busy_ = false;
  bool is_over_ = false;
  std::uint32_t restarts_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t last_step_ = std::numeric_limits<std::uint64_t>::max();
};

int run_rude(const RudeArguments& arguments) {
  const Result<HubAccess> access =
      hub_access(arguments.invite, arguments.hub, arguments.invite.empty() ? arguments.name : "");
  if (!access.ok()) {
    std::cerr << "longhaul_rude_replica: " << access.error().message << '\n';
    return 2;
  }
  RudeReplica replica(arguments, *access);
  for (std::size_t i = 0; i < arguments.times; ++i) replica.connect_once();
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  longhaul::RudeArguments arguments;
  CLI::App program{"A replica that lies"};
  program.add_option("--hub", arguments.hub, "HOST:PORT of a hub without TLS");
  program.add_option("--invite", arguments.invite, "In place of --hub");
  program.add_option("--name", arguments.name, "Its name, with --hub");
  program.add_option("--lie", arguments.lie, "What about")->check(CLI::IsMember(longhaul::kLies));
  program.add_option("--elements", arguments.elements, "Of the model");
  program.add_option("--times", arguments.times, "Connections, one after the other");
  program.add_option("--rounds", arguments.rounds, "To take part in, on each connection");
  CLI11_PARSE(program, argc, argv);
  return longhaul::run_rude(arguments);
}
