// Exchange and membership without a hub: every rank gathers the updates of all, and forms the mean
// itself. A thread of its own gathers, so that submitting never blocks.
//
// Each turn of that thread gathers one update of every rank: first a header of a fixed size, then
// the payloads, padded to the longest. A round closes when the updates of all ranks are there. The
// mean is summed in rank order by the hub's own code, so the bits are the hub's. Everything that a
// rank decides follows from what all ranks have gathered, so all decide alike.
//
// With an AllReduce updates have values in place of payloads, and only headers are gathered. When
// the headers of all ranks have named a round, each sums its values where they are. All have read
// the same headers, so they sum the same rounds in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/base/mailbox.h"
#include "longhaul/base/mutex.h"
#include "longhaul/base/workers.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/exchange/membership.h"
#include "longhaul/round/mean_compressor.h"
#include "longhaul/sync/engine.h"
#include "trainer/collective_planner.h"
#include "trainer/rank_calls.h"

namespace longhaul::trainer {

// The run that the ranks of a collective share.
struct CollectiveOptions {
  EngineOptions engine;        // `slot` is the rank, `replicas` the number of ranks
  std::size_t elements = 0;    // of the model
  std::vector<float> weights;  // by rank
  std::uint64_t steps = 0;     // of the run
  Seconds computing{};         // of a step, until one was measured
};

class Collective final : public Exchange, public Membership {
 public:
  // `clock` outlives it, and nobody else gathers meanwhile. With a planner it measures
  // the links first, which waits for all ranks. `reduce` is for an engine whose means are formed in
  // place; the values must outlive it.
  static Result<std::unique_ptr<Collective>> start(const CollectiveOptions& options,
                                                   AllGather gather, const Clock& clock,
                                                   AllReduce reduce = {});
  // Drops updates whose round has not closed.
  ~Collective() override;
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  void submit(Update update) override EXCLUDES(mutex_);
  // The error of a gather ends the run: it comes again from every later call.
  Result<Mean> collect(RoundId round, Deadline deadline) override EXCLUDES(mutex_);
  [[nodiscard]] bool averages_in_place() const override { return reduce_ != nullptr; }

  Result<std::optional<Plan>> first_plan(Deadline deadline) override EXCLUDES(mutex_);
  Result<Stance> stance(std::uint64_t step, RoundId round, Deadline deadline) override
      EXCLUDES(mutex_);
  State take_snapshot() override;  // never: no rank joins late
  [[nodiscard]] std::size_t updates_in_flight() const override EXCLUDES(mutex_);
  Status await(RoundId round, Deadline deadline) override EXCLUDES(mutex_);
  void report(const StepReport& report) override EXCLUDES(mutex_);
  // Precondition: await() has returned for every round that was submitted.
  void save(State& checkpoint) const override EXCLUDES(mutex_);
  // Before the first update.
  Status load(const State& checkpoint) EXCLUDES(mutex_);

  // All ranks save checkpoints after the same steps. These two are equal on all ranks after each
  // step: they come with the means that were collected.
  // The time on the clock of rank 0.
  [[nodiscard]] Seconds common_time() const { return common_time_; }
  // Every rank has a checkpoint of this step or a later one.
  [[nodiscard]] std::uint64_t kept_by_all() const { return kept_by_all_; }
  // This rank has written the checkpoint of this step.
  void keep(std::uint64_t step) EXCLUDES(mutex_);

  // All decisions of the planner since the last call, the first one included.
  [[nodiscard]] std::vector<std::pair<RoundId, Decision>> take_decisions() EXCLUDES(mutex_);

 private:
  struct OpenRound {
    std::size_t elements = 0;
    std::size_t arrived = 0;
    std::vector<WeightedPayload> sent;  // by rank
    std::span<float> in_place;          // of this rank
  };
  struct Closed {
    Mean mean;
    Seconds time{};          // on the clock of rank 0
    std::uint64_t kept = 0;  // step of which every rank has a checkpoint
  };
  Collective(CollectiveOptions options, AllGather gather, const Clock& clock, AllReduce reduce);
  Status measure() EXCLUDES(mutex_);
  Status probe();
  void run();
  Status turn(const Update& update) EXCLUDES(mutex_);
  Result<std::vector<Turn>> gather_turns(const Update& update) EXCLUDES(mutex_);
  Result<std::vector<ByteBuffer>> gather_payload(ByteView padded);
  Result<std::vector<CheckedPayload>> payloads_of(const std::vector<Turn>& turns,
                                                  const Update& update);
  Status average(std::span<float> values);
  Status close(RoundId id, const OpenRound& round, const std::vector<Turn>& turns) EXCLUDES(mutex_);
  Result<Mean> mean_of(RoundId id, const OpenRound& round, std::optional<Decision>& decision);

  CollectiveOptions options_;
  AllGather gather_;
  AllReduce reduce_;  // nothing: payloads are gathered
  const Clock& clock_;
  TimePoint start_;
  // Only the training thread touches these two.
  Seconds common_time_{};
  std::uint64_t kept_by_all_ = 0;

  // Only the gathering thread touches these, and before it start() and load().
  Workers workers_;
  std::unique_ptr<MeanCompressor> compressor_;  // of two-way recipes
  std::unique_ptr<CollectivePlanner> planner_;  // nothing: the plan is fixed
  std::map<RoundId, OpenRound> open_;
  Turn own_;  // its times are those of the turn before

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<RoundId, Closed> closed_ GUARDED_BY(mutex_);
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> failure_ GUARDED_BY(mutex_);
  Seconds computing_ GUARDED_BY(mutex_){};
  std::uint64_t kept_ GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<RoundId, Decision>> decisions_ GUARDED_BY(mutex_);
  Mailbox<Update> outbox_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul::trainer
