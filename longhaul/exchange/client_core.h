// A replica's side of the protocol: connects, submits, puts means together, comes back after a
// failure. A state machine for one thread: events and the time come in, frames, errands and news go
// out; it holds no clock, no thread and no socket. Work that grows with the model is an errand.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "longhaul/base/errands.h"
#include "longhaul/base/state.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/link/rate_estimator.h"
#include "longhaul/link/round_trips.h"
#include "longhaul/round/contribution.h"
#include "longhaul/transport/lane_count.h"
#include "longhaul/transport/lanes.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// A replica as it introduces itself to the hub, and where it stands.
struct ClientOptions {
  std::string name;
  std::string token;
  std::optional<std::uint32_t> slot;  // which replica of the scenario to be; none: any
  std::size_t elements = 0;
  LayerTable layers;
  SharedBytes initial;    // the model before the first step, as float32
  std::size_t lanes = 1;  // to begin with; more are opened where the path needs them
  std::size_t most_lanes = kMostAutomaticLanes;
  std::optional<Bandwidth> rate;  // of bulk data to the hub, at most
  Seconds compute{};              // of one step, as far as it is known
  // Of means that wait for the training thread, beside a few; then the hub is held back.
  std::size_t most_mean_bytes = std::size_t{256} << 20;
  Seconds silence{5.0};  // a hub that is not heard of for so long is gone
  // Where it stands: not fresh is one that resumes from a checkpoint.
  bool is_fresh = true;
  std::uint64_t run = 0;                   // that its state is of
  RoundId next_round;                      // not merged yet
  std::uint64_t first_step = 0;            // it was given its state before this step
  std::uint64_t step = 0;                  // that it does next
  std::optional<Attendance> attendance{};  // none: from the first step on that it does
  std::map<RoundId, Update> own{};         // its updates of rounds that it has not merged
  // Of one that cannot do steps again: it has all its updates of rounds before this one.
  std::optional<RoundId> own_until{};
};

// Tells the training thread of everything that comes from the hub. Called from inside the core's
// functions.
class ClientNews {
 public:
  virtual ~ClientNews() = default;
  // The hub gave it a slot in a run. `contributed`: the last of its updates that is in a round.
  virtual void on_welcome(std::size_t slot, std::uint64_t run,
                          std::optional<Contribution> contributed) = 0;
  virtual void on_enrolled(RoundId from, const Plan& plan) = 0;
  virtual void on_mean(Mean mean) = 0;       // nothing is returned yet
  virtual void on_restart(State state) = 0;  // what it has is replaced
  virtual void on_finish(std::uint64_t last_step, v1::FinishCause cause) = 0;
  virtual void on_evaluate(bool is_on) = 0;                    // scoring is its duty, or is not
  virtual void on_evaluation(const v1::Evaluation& told) = 0;  // what another replica scored
  virtual void on_round_trip(Seconds took) = 0;                // of a ping, as this thread saw it
  virtual void on_lost(const Error& why) = 0;                  // the connection, or a try at one
  virtual void on_failed(const Error& why) = 0;                // for good
  virtual void on_left() = 0;                                  // the hub knows that it leaves
};

class ClientCore {
 public:
  // Computes the digest of the initial model, which takes a while.
  ClientCore(ClientOptions options, Connector& connector, StreamInbox inbox, Errands& errands,
             ClientNews& news);
  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  void on_event(StreamEvent event, TimePoint now);
  // The hub does what no hub does.
  static Error broken(const std::string& what);

  // An errand is done.
  void on_errand(const Errands::End& end, TimePoint now);
  // At least a few times a second. The first one connects.
  void on_tick(TimePoint now);

  // While not, means stay on their way: the hub is held back.
  void set_reading(bool is_reading);

  // Kept until its round has closed, and sent again where needed; not at all if it has closed.
  void submit(const Update& update);
  void report(v1::Report report);
  // While the hub is away the last one is kept for it.
  void tell(const v1::Evaluation& evaluation);
  // Leaves in order, as soon as a hub is there to be told, and does not connect again.
  void leave();

  [[nodiscard]] std::size_t reconnections() const { return reconnections_; }
  // Transfers from the hub that errands are checking.
  [[nodiscard]] std::size_t unchecked() const { return connection_ ? connection_->unchecked : 0; }
  // Updates whose round has not closed as far as this replica knows.
  [[nodiscard]] const std::map<RoundId, Update>& kept() const { return kept_; }

 private:
  // One connection: from dialling until it breaks.
  struct Connection {
    Connection(const CargoOptions& limits, const std::optional<Bandwidth>& rate)
        : lanes(limits, rate) {}
    StreamId control_id = 0;
    StreamPtr control;
    std::deque<Frame> outgoing;
    bool is_writing = false;
    bool is_welcome = false;
    bool is_enrolled = false;
    bool has_said_goodbye = false;
    std::uint64_t probes = 0;               // that have come
    std::map<StreamId, StreamPtr> opening;  // lanes that have not said what they are yet
    std::size_t joined_lanes = 1;           // that the hub was told of; others may fail
    Lanes lanes;
    // Announced in order, which tells what there is no round of.
    std::map<RoundId, v1::Closed> closed;   // whose mean has not come yet
    RoundId announced_until;                // behind the last one
    std::map<RoundId, ByteBuffer> arrived;  // means that nobody has announced yet
    std::size_t unchecked = 0;              // errands under way: means and a snapshot
    std::optional<v1::Restart> restart;     // its snapshot is on its way, means wait for it
    bool is_snapshot_here = false;          // it has come, and is being checked
    std::uint32_t restarts = 0;             // heard of
    std::uint32_t restarted = 0;            // carried out
    std::deque<Arrival> early;              // before the restart that they belong to
    TimePoint last_heard;
    std::optional<std::pair<std::uint64_t, TimePoint>> ping;
    TimePoint next_ping;
  };

  [[nodiscard]] bool has_mean(RoundId round) const;
  void connect(TimePoint now);
  void disconnect();
  void lose(const Error& why, TimePoint now);
  void give_up(const Error& why);
  StreamId open_stream(StreamPtr& stream);
  void send(Frame frame);
  void on_frame(StreamId id, Frame frame, TimePoint now);
  void on_control(Frame frame, TimePoint now);
  void on_welcome(const v1::Welcome& welcome, TimePoint now);
  void on_enrolled(const v1::Enrolled& enrolled);
  void on_restart(v1::Restart restart);
  void on_written(StreamId id);
  void on_closed(StreamId id, const Error& why, TimePoint now);
  void open_lane();
  void add_lanes(Bandwidth up);
  void send_update(const Update& update);
  void send_probe(std::uint64_t bytes);

  // client_arrivals.cpp: means and snapshots.
  void on_arrival(Arrival arrival);
  void on_cargo(Arrival arrival);
  void on_snapshot(Arrival arrival);
  void on_state(Result<State>&& state);
  void assemble(RoundId round);
  void on_terms(RoundId round, Result<std::vector<WeightedPayload>>&& terms);
  void forget(RoundId round);
  // Runs an errand of this connection and of this state. Its end does not come to another one.
  template <typename Work, typename End>
  void check(Work work, End end);
  void read_as_told();

  ClientOptions options_;
  Connector& connector_;
  StreamInbox inbox_;
  Errands& errands_;
  ClientNews& news_;
  std::uint64_t initial_digest_ = 0;
  TimePoint now_;  // of the event under way
  std::unique_ptr<Connection> connection_;
  StreamId next_stream_ = 1;
  std::uint64_t session_ = 0;
  std::size_t slot_ = 0;
  std::map<RoundId, Update> kept_;
  std::uint64_t first_step_ = 0;    // the state was given before it
  std::uint64_t step_ = 0;          // it stands there, or further
  RoundId next_mean_;               // every mean before this one has come
  std::set<RoundId> means_beyond_;  // that have come as well
  std::uint64_t next_ping_id_ = 1;
  RoundTrips round_trips_;
  RateEstimator down_{kTrustedDuration};
  std::size_t largest_transfer_ = 0;  // in bytes
  std::uint64_t probes_ = 0;
  v1::Report unreported_;  // samples for the next report
  std::optional<v1::Evaluation> untold_;
  TimePoint next_try_;
  Seconds back_off_{};
  std::mt19937_64 jitter_;
  std::size_t reconnections_ = 0;
  bool is_reading_ = true;
  bool is_leaving_ = false;
  bool has_ended_ = false;  // it has left, or given up
};

}  // namespace longhaul
