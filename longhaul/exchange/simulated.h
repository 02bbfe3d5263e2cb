// All replicas in one process on a virtual clock: real payloads, modelled links. Deterministic.
//
// The replicas go through their steps together: all submit, settle() closes the rounds, all
// collect. Time is every replica's own: submitting happens at its present, collecting moves it to
// when the mean has arrived.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "longhaul/base/workers.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/link/link_model.h"
#include "longhaul/round/mean_compressor.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

struct State;

// A replica of the simulated network: its link, and its weight in means.
struct SimulatedPeer {
  LinkModel link;
  float weight = 1.0F;
};

// One payload on its way, for time lines.
struct Transfer {
  std::size_t replica = 0;
  bool is_up = true;
  RoundId round;
  Seconds begin{};       // handed over to the link
  Seconds first_byte{};  // its first byte has arrived
  Seconds end{};         // all of it has arrived
  std::size_t bytes = 0;
};

// A closed round as the hub knows it.
struct ClosedRound {
  RoundId id;
  Seconds time{};
  std::span<const WeightedPayload> sent;  // by its members, with their weights
  const CheckedPayload& mean;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(const std::vector<SimulatedPeer>& peers, Workers& workers);
  ~SimulatedNetwork();
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  // submit() and collect() of different replicas may run at once, but not together with settle().
  [[nodiscard]] Exchange& exchange(std::size_t replica);

  [[nodiscard]] Seconds now(std::size_t replica) const;
  // Counts the updates of a replica whose means it has not collected.
  [[nodiscard]] std::size_t in_flight(std::size_t replica) const;
  // The replica computes for a while.
  void advance(std::size_t replica, Seconds by);

  // Takes what was submitted to the links and closes every round that all replicas have submitted
  // to. An update of another size than its round is an error; the network is of no use then.
  Status settle();

  // Asked in settle() for each round that closes; a plan that it returns goes to everyone with the
  // mean of that round.
  void plan_with(std::function<std::optional<Plan>(const ClosedRound&)> planner) {
    planner_ = std::move(planner);
  }

  // Means are compressed again on their way down, from the first round on; they are of the whole
  // model.
  void compress_means(std::unique_ptr<MeanCompressor> compressor) {
    compressor_ = std::move(compressor);
  }
  [[nodiscard]] const MeanCompressor* mean_compressor() const { return compressor_.get(); }

  // The clocks, the lines, and the means that nobody has collected: after load() another network of
  // these peers goes on from there. Only between steps, and without a planner.
  void save(State& state) const;
  Status load(const State& state);

  [[nodiscard]] std::uint64_t bytes_up() const { return bytes_up_; }
  [[nodiscard]] std::uint64_t bytes_down() const { return bytes_down_; }

  // Called in settle() for each payload, in a fixed order.
  void on_transfer(std::function<void(const Transfer&)> observer) {
    observer_ = std::move(observer);
  }

 private:
  class Endpoint;
  struct OpenRound;
  void close(RoundId id, const OpenRound& round);
  Mean mean_of(RoundId id, const CheckedPayload& payload);
  void note(const Transfer& transfer);

  Workers& workers_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::map<RoundId, OpenRound> rounds_;
  std::uint64_t bytes_up_ = 0;
  std::uint64_t bytes_down_ = 0;
  std::function<void(const Transfer&)> observer_;
  std::function<std::optional<Plan>(const ClosedRound&)> planner_;
  std::unique_ptr<MeanCompressor> compressor_;  // nothing: the cheapest exact way down
};

}  // namespace longhaul
