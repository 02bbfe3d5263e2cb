// A hub without threads, streams or time of its own: the test is every replica.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/hub/hub_core.h"
#include "longhaul/sync/recipe.h"
#include "tests/base/hand_errands.h"
#include "tests/codec/checked.h"
#include "tests/transport/hand_stream.h"

namespace longhaul::testing {

constexpr std::size_t kDeskElements = 4;

inline std::vector<float> desk_model() { return {1, 2, 3, 4}; }

inline HubOptions desk_options(const std::string& recipe = "d-sgd", std::size_t replicas = 2) {
  return {.training = {.engine = {.recipe = find_recipe(recipe).value(),
                                  .layers = {{.name = "all", .count = kDeskElements}}},
                       .replicas = replicas},
          .start_with = replicas};
}

inline Frame join_frame(const std::string& name) {
  Frame frame;
  v1::Join& join = *frame.mutable_join();
  join.set_protocol(kProtocolVersion);
  join.set_wire(kWireVersion);
  join.set_name(name);
  join.set_elements(kDeskElements);
  join.set_lanes(1);
  join.set_is_fresh(true);
  join.set_initial(digest_of(desk_model()));
  return frame;
}

inline ByteBuffer dense_payload(float value) {
  Workers workers{1};
  std::vector<float> residual(kDeskElements);
  const std::vector<float> update(kDeskElements, value);
  return make_codec(parse_codec("dense/fp32").value(), {{.name = "all", .count = kDeskElements}},
                    workers)
      ->take({.residual = residual, .increment = update, .keep_ratio = 1});
}

inline CheckedPayload checked_payload(float value) {
  return testing_data::checked(dense_payload(value), kDeskElements);
}

inline std::vector<std::size_t> slots_in(const RoundOutcome& outcome) {
  std::vector<std::size_t> slots;
  for (const Contributor& one : outcome.round.contributors) slots.push_back(one.slot);
  return slots;
}

class HubDesk {
 public:
  explicit HubDesk(HubOptions options = desk_options(), LogLevel level = LogLevel::kOff)
      : core(watched(std::move(options)), workers_, errands, Log(level)) {}

  struct Peer {
    StreamId id = 0;
    HandStreamPtr stream;
    // The hub has closed it, or let it go.
    [[nodiscard]] bool is_gone() const { return stream->is_closed || stream.use_count() == 2; }
  };
  struct Joined {
    Peer control;
    Peer lane;
    v1::Welcome welcome;
  };

  Peer open() {
    Peer peer{.id = next_++, .stream = std::make_shared<HandStream>()};
    streams_[peer.id] = peer.stream;
    tell(peer.id, StreamOpened(peer.stream));
    return peer;
  }
  void hear(const Peer& peer, Frame frame) { tell(peer.id, std::move(frame)); }
  void breaks(const Peer& peer) { tell(peer.id, StreamClosed{ErrorCode::kClosed, "broken"}); }
  void advance(Seconds by) {
    now = time_after(now, by);
    core.on_tick(now);
    pump();
  }

  // Does the errand that has waited longest.
  void end_errand() {
    core.on_errand(errands.next(), now);
    pump();
  }

  Joined join(const Frame& frame) {
    Joined joined{.control = open()};
    hear(joined.control, frame);
    const auto welcome = joined.control.stream->take(Frame::kWelcome);
    if (!welcome) {
      ADD_FAILURE() << frame.join().name() << " is not welcome";
      return joined;
    }
    joined.welcome = welcome->welcome();
    joined.lane = open();
    joined.lane.stream->is_held = holds_lanes;
    Frame lane;
    lane.mutable_open_lane()->set_session(joined.welcome.session());
    hear(joined.lane, lane);
    return joined;
  }
  // Of a replica that has taken part before.
  [[nodiscard]] Frame rejoin_frame(const std::string& name, std::uint64_t next_round = 0) const {
    Frame frame = join_frame(name);
    frame.mutable_join()->set_is_fresh(false);
    frame.mutable_join()->set_run(core.status().run);
    *frame.mutable_join()->mutable_next_round() = to_message(RoundId{.step = next_round});
    return frame;
  }
  // As many as the scenario has; the run has started.
  std::vector<Joined> start(std::size_t replicas = 2) {
    std::vector<Joined> all;
    for (std::size_t i = 0; i < replicas; ++i)
      all.push_back(join(join_frame("replica-" + std::to_string(i))));
    send_model(all[0]);
    EXPECT_TRUE(core.status().is_started);
    return all;
  }
  void send_model(const Joined& from) {
    const std::vector<float> model = desk_model();
    const auto bytes = std::as_bytes(std::span(model));
    send(from, {.cargo = Cargo::kSnapshot}, {bytes.begin(), bytes.end()});
  }
  void send(const Joined& from, TransferId id, ByteBuffer bytes,
            const Attendance& attendance = {}) {
    OutgoingCargo cargo;
    cargo.add(id, std::make_shared<const ByteBuffer>(std::move(bytes)), to_message(attendance));
    while (!cargo.is_empty()) hear(from.lane, cargo.next_chunk());
  }
  void update(const Joined& from, std::uint64_t step, ByteBuffer payload,
              std::uint32_t restarts = 0, const Attendance& attendance = {},
              std::uint32_t part = 0) {
    send(from, {.cargo = Cargo::kUpdate, .step = step, .part = part, .restarts = restarts},
         std::move(payload), attendance);
  }
  void report(const Joined& from, v1::Report report) {
    Frame frame;
    *frame.mutable_report() = std::move(report);
    hear(from.control, std::move(frame));
  }

  // Why a join was refused, and whether for good.
  std::optional<v1::Refused> refusal(const Frame& frame) {
    const Peer peer = open();
    hear(peer, frame);
    const auto refused = peer.stream->take(Frame::kRefused);
    return refused ? std::optional(refused->refused()) : std::nullopt;
  }

 private:
  Workers workers_{1};

 public:
  HandErrands errands;
  HubCore core;
  TimePoint now = time_after(TimePoint{}, Seconds(100));
  bool holds_lanes = false;          // those that are opened from now on
  std::vector<RoundOutcome> rounds;  // that have closed; the first one is the start
  std::vector<v1::Evaluation> evaluations;

 private:
  HubOptions watched(HubOptions options) {
    options.watcher = [this](const RoundNews& news) {
      if (news.evaluation) return evaluations.push_back(*news.evaluation);
      rounds.push_back(news.outcome);
    };
    return options;
  }
  void tell(StreamId id, StreamNews what) {
    core.on_event({.stream = id, .what = std::move(what)}, now);
    pump();
  }
  // Everything that is written passes at once.
  void pump() {
    for (bool is_quiet = false; !is_quiet;) {
      is_quiet = true;
      for (auto& [id, stream] : streams_) {
        if (stream->is_held || !std::exchange(stream->is_writing, false)) continue;
        is_quiet = false;
        core.on_event({.stream = id, .what = FrameWritten{}}, now);
      }
    }
  }

  StreamId next_ = 1;
  std::map<StreamId, HandStreamPtr> streams_;
};

}  // namespace longhaul::testing
