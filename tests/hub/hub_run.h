// A hub and its replicas as threads of one process, on streams that can be cut.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "longhaul/codec/digest.h"
#include "longhaul/hub/hub.h"
#include "longhaul/sync/replica.h"
#include "longhaul/transport/local.h"
#include "tests/sync/quadratic_workload.h"

namespace longhaul::testing {

inline Seconds hub_test_limit() { return Seconds(60); }

struct HubRunSetup {
  std::string recipe = "static";
  std::size_t replicas = 3;
  std::size_t elements = 500;
  std::size_t steps = 60;
  RoundPolicy policy;
  std::filesystem::path directory;
  JournalLimits journal;
};

inline EngineSetup engine_setup_of(const HubRunSetup& setup) {
  return {.recipe = find_recipe(setup.recipe).value(),
          .optimizer = {.kind = OptimizerKind::kMomentum},
          .lr = {.peak = 0.05, .steps = setup.steps},
          .layers = QuadraticWorkload(setup.elements).layers()};
}

inline HubSetup hub_setup_of(const HubRunSetup& setup) {
  return {.training = {.engine = engine_setup_of(setup),
                       .replicas = setup.replicas,
                       .policy = setup.policy,
                       .directory = setup.directory,
                       .journal = setup.journal},
          .start_with = setup.replicas,
          .silence = Seconds(1)};
}

// One replica: a thread that trains until its steps are done or it is told to stop.
class TestReplica {
 public:
  TestReplica(const HubRunSetup& setup, std::size_t slot, Acceptor& hub)
      : setup_(setup),
        name_("replica-" + std::to_string(slot)),
        workload_(setup.elements),
        learner_(workload_.make_learner(slot)),
        network(hub, name_),
        client_(client_setup(slot), network, clock_),
        replica_({.engine = engine_setup_of(setup)}, *learner_, client_, workers_, clock_),
        thread_([this] { run(); }) {}
  ~TestReplica() { stop(); }
  TestReplica(const TestReplica&) = delete;
  TestReplica& operator=(const TestReplica&) = delete;

  void stop() {
    is_stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

  // After wait() or stop().
  [[nodiscard]] const Engine& engine() const { return replica_.engine(); }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_of(engine().shared()); }
  [[nodiscard]] std::size_t reconnections() const { return client_.reconnections(); }
  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] std::size_t sat_out() const { return sat_out_; }
  [[nodiscard]] double loss() const { return loss_; }

 private:
  ClientSetup client_setup(std::size_t slot) const {
    const std::span bytes = std::as_bytes(workload_.initial_parameters());
    return {.name = name_,
            .slot = static_cast<std::uint32_t>(slot),
            .elements = setup_.elements,
            .layers_digest = 7,
            .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end()),
            .lanes = 2,
            .compute = Seconds(0.01),
            .silence = Seconds(1)};
  }

  void run() {
    const Deadline limit = deadline_after(hub_test_limit());
    const auto fail = [this](const Error& error) { failure_ = error; };
    if (const Status started = retry([&](Deadline d) { return replica_.start(d); }, limit);
        !started.ok())
      return fail(started.error());
    while (!is_stopped_ && replica_.engine().steps_done() < setup_.steps) {
      const Result<StepFacts> facts = replica_.step(deadline_after(Seconds(0.2)));
      if (!facts.ok()) {
        if (facts.error().code == ErrorCode::kDeadline && SystemClock().now() < limit) continue;
        return fail(facts.error());
      }
      loss_ = facts->loss;
      steps_ = replica_.engine().steps_done();
      if (facts->stance == Stance::kSitOut) ++sat_out_;
    }
    if (is_stopped_) return;
    if (const Status done = retry([&](Deadline d) { return replica_.finish(d); }, limit);
        !done.ok())
      fail(done.error());
  }

  template <typename Try>
  Status retry(Try what, Deadline limit) {
    for (;;) {
      Status status = what(deadline_after(Seconds(0.2)));
      if (status.ok() || status.error().code != ErrorCode::kDeadline || is_stopped_ ||
          SystemClock().now() > limit)
        return status;
    }
  }

  HubRunSetup setup_;
  std::string name_;
  SystemClock clock_;
  Workers workers_{1};
  QuadraticWorkload workload_;
  std::unique_ptr<Learner> learner_;

 public:
  LocalNetwork network;

 private:
  HubClient client_;
  Replica replica_;
  std::optional<Error> failure_;
  std::atomic<std::size_t> steps_{0};
  std::atomic<std::size_t> sat_out_{0};
  std::atomic<double> loss_{0};
  std::atomic<bool> is_stopped_{false};
  std::thread thread_;
};

}  // namespace longhaul::testing
