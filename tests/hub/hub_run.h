// A hub and its replicas as threads of one process, on streams that can be cut.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/hub/hub.h"
#include "longhaul/sync/replica.h"
#include "longhaul/sync/sent_log.h"
#include "longhaul/transport/local.h"
#include "tests/hub/ledger.h"
#include "tests/sync/quadratic_workload.h"
#include "tests/sync/uneven_recipe.h"

namespace longhaul::testing {

inline Seconds hub_test_limit() { return Seconds(60); }

// Waits for something that threads bring about; no test hangs.
inline bool soon(const std::function<bool()>& is_so) {
  Pacer pacer;
  const Deadline limit = deadline_after(Seconds(30));
  while (!is_so()) {
    if (Clock().now() > limit) return false;
    pacer.wait_until(deadline_after(Seconds(0.005)));
  }
  return true;
}

struct HubRunOptions {
  std::string recipe = "static";     // a name, or with parts and period: "olco3-oc:5:4"
  std::optional<int> delay_steps{};  // other than the recipe's
  std::size_t replicas = 3;
  std::size_t elements = 500;
  std::size_t steps = 60;
  double lr = 0.05;
  RoundOptions policy;
  std::filesystem::path directory;
  JournalOptions journal;
  Seconds silence{1};
  Seconds patience{30};
  Seconds step_time{};
  bool is_open_ended = false;  // until the hub is told to finish; `steps` are of the schedule only
  Ledger* ledger = nullptr;
  bool loses_returned = false;
  bool has_unequal_passes = false;  // slot n makes n + 1 of them in a step
  bool may_look_ahead = true;       // of a planner; a ledger counts in one unit, moves or gradients
  // A checkpoint for whoever comes back: after so many steps, or every so many; 0: none.
  std::uint64_t save_after = 0;
  std::uint64_t save_every = 0;
  std::optional<Recipe> other_recipe{};          // in place of `recipe`
  std::optional<Plan> announced{};               // comes with every mean
  decltype(TrainingOptions::planner) planner{};  // in place of the recipe's
  LocalStep local_step = LocalStep::kOurs;
  std::filesystem::path sent_logs{};  // a directory for what replicas have sent; none: they forget
};

// What a replica saved, and what the books said then.
struct Saved {
  State state;
  Ledger::Taken taken;
};

// "olco3-oc:5:4": in five parts, each with a round in every four steps. Where there are more parts
// than steps in a period, several have their rounds in the same step. "uneven-late" has a schedule.
inline Recipe test_recipe(const std::string& text) {
  std::istringstream in(text);
  std::string name;
  std::getline(in, name, ':');
  if (name == uneven_recipe().name) return uneven_recipe();
  Recipe recipe = find_recipe(name).value();
  char colon = 0;
  in >> recipe.local.fragments >> colon >> recipe.plan.period_steps;
  if (!in) recipe = find_recipe(name).value();
  return recipe;
}

inline std::string name_of_test(std::string recipe) {
  std::ranges::replace_if(
      recipe, [](char c) { return c == '-' || c == ':'; }, '_');
  return recipe;
}

inline EngineOptions engine_setup_of(const HubRunOptions& options) {
  Recipe recipe = options.other_recipe ? *options.other_recipe : test_recipe(options.recipe);
  recipe.plan.delay_steps = options.delay_steps.value_or(recipe.plan.delay_steps);
  return {.recipe = recipe,
          .local_step = options.local_step,
          .optimizer = {.kind = OptimizerKind::kMomentum},
          .lr = {.peak = options.lr, .steps = options.steps},
          .layers = QuadraticWorkload(options.elements).layers()};
}

inline std::vector<Part> parts_of(const std::string& recipe, std::size_t elements) {
  return longhaul::parts_of(engine_setup_of({.recipe = recipe, .elements = elements}), elements);
}

// A hub does not know who makes the local steps of its replicas.
inline HubOptions hub_options_of(const HubRunOptions& options) {
  EngineOptions engine = engine_setup_of(options);
  engine.local_step = LocalStep::kOurs;
  return {.training = {.engine = std::move(engine),
                       .steps = options.is_open_ended ? 0 : options.steps,
                       .may_look_ahead = options.may_look_ahead,
                       .planner = options.planner,
                       .replicas = options.replicas,
                       .policy = options.policy,
                       .directory = options.directory,
                       .journal = options.journal},
          .start_with = options.replicas,
          .silence = options.silence,
          .patience = options.patience};
}

// Writes down what an engine of that options takes from each gradient: the gradient itself, or with
// the late correction what an optimizer of the replica's own makes of it. With the caller's local
// step it moves the parameters itself, and differently each time: what it draws is not saved.
class LedgerLearner final : public Learner {
 public:
  LedgerLearner(std::unique_ptr<Learner> inner, const EngineOptions& options, Ledger* ledger,
                std::size_t slot, std::uint32_t passes = 1)
      : inner_(std::move(inner)),
        passes_(passes),
        is_late_(options.recipe.plan.merge == Merge::kLate),
        is_callers_(options.local_step == LocalStep::kCallers),
        lr_(options.lr.at(0)),
        optimizer_(options.optimizer, inner_->parameters().size()),
        ledger_(ledger),
        slot_(slot) {}

  [[nodiscard]] std::span<float> parameters() override { return inner_->parameters(); }
  [[nodiscard]] std::span<float> gradient() override { return inner_->gradient(); }
  double compute_gradient() override {
    const double loss = mean_of_passes();
    if (is_callers_) {
      move();
      return loss;
    }
    if (ledger_ == nullptr) return loss;
    std::vector<double> update(gradient().begin(), gradient().end());
    if (is_late_) {
      std::vector<float> moved(parameters().begin(), parameters().end());
      optimizer_.step(0, moved, gradient(), lr_);
      for (std::size_t i = 0; i < update.size(); ++i)
        update[i] = static_cast<double>(parameters()[i] - moved[i]);
    }
    ledger_->updated(slot_, update);
    return loss;
  }
  [[nodiscard]] std::uint32_t passes() const override { return passes_; }
  std::function<std::uint64_t()> step_now;  // of the engine; for the caller's local step
  // The optimizer goes back with its replica.
  void save(State& state) const override {
    inner_->save(state);
    State own;
    optimizer_.save(own);
    state.blobs[kOptimizer] = to_bytes(own);
  }
  Status load(const State& state) override {
    const Result<ByteView> own = state.blob(kOptimizer);
    if (!own.ok()) return own.error();
    Status loaded = optimizer_.load(state_from_bytes(*own).value());
    return loaded.ok() ? inner_->load(state) : loaded;
  }

 private:
  static constexpr const char* kOptimizer = "ledger_optimizer";

  void move() {
    static std::atomic<std::uint64_t> draws{0};
    std::mt19937_64 random(++draws);
    std::vector<double> update(parameters().size());
    for (std::size_t i = 0; i < update.size(); ++i) {
      const float before = parameters()[i];
      parameters()[i] -= static_cast<float>(lr_) * (gradient()[i] + 0.2F * uniform(random));
      update[i] = static_cast<double>(before) - static_cast<double>(parameters()[i]);
    }
    if (ledger_ != nullptr) ledger_->moved(slot_, step_now(), update);
  }
  // The gradient is the mean of those of the passes, each of a batch of its own.
  double mean_of_passes() {
    double loss = inner_->compute_gradient();
    if (passes_ == 1) return loss;
    std::vector<float> sum(gradient().begin(), gradient().end());
    for (std::uint32_t pass = 1; pass < passes_; ++pass) {
      loss += inner_->compute_gradient();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient()[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i)
      gradient()[i] = sum[i] / static_cast<float>(passes_);
    return loss / passes_;
  }

  std::unique_ptr<Learner> inner_;
  std::uint32_t passes_;
  bool is_late_;
  bool is_callers_;
  double lr_;
  Optimizer optimizer_;
  Ledger* ledger_;
  std::size_t slot_;
};

// One replica: a thread that trains until its steps are done or it is told to stop.
class TestReplica {
 public:
  // `saved`: it goes on from there.
  TestReplica(const HubRunOptions& options, std::size_t slot, Acceptor hub,
              std::optional<Saved> saved = {})
      : options_(options),
        slot_(slot),
        resumed_(std::move(saved)),
        sent_(read_sent()),
        name_("replica-" + std::to_string(slot)),
        workload_(options.elements),
        learner_(workload_.make_learner(slot), engine_setup_of(options), options.ledger, slot,
                 options.has_unequal_passes ? static_cast<std::uint32_t>(slot) + 1 : 1),
        network(std::move(hub), name_),
        client_(client_options(), network, clock_),
        exchange_(client_, options.ledger, slot),
        log_(options.sent_logs.empty() ? nullptr
                                       : std::make_unique<SentLog>(sent_file(), sent_, exchange_)),
        replica_({.engine = engine_setup_of(options),
                  .workers = workers_,
                  .clock = clock_,
                  .step_time = options.step_time},
                 learner_, client_, log_ ? static_cast<Exchange&>(*log_) : exchange_) {
    learner_.step_now = [this] { return replica_.engine().steps_done(); };
    exchange_.loses_returned = options.loses_returned;
    exchange_.announced = options.announced;
    thread_ = std::thread([this] { run(); });
  }
  ~TestReplica() { stop(); }
  TestReplica(const TestReplica&) = delete;
  TestReplica& operator=(const TestReplica&) = delete;

  void stop() {
    is_stopped_ = true;
    replica_.interrupt();
    if (thread_.joinable()) thread_.join();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

  // After wait() or stop().
  [[nodiscard]] const Engine& engine() const { return replica_.engine(); }
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  [[nodiscard]] std::span<const float> position() { return learner_.parameters(); }
  [[nodiscard]] std::uint64_t digest() const { return digest_of(engine().shared()); }
  [[nodiscard]] std::size_t reconnections() const { return client_.reconnections(); }
  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  // It has done all steps and taken its leave, or tried to.
  [[nodiscard]] bool has_ended() const { return has_ended_; }
  [[nodiscard]] std::size_t sat_out() const { return sat_out_; }
  [[nodiscard]] double loss() const { return loss_; }
  // After stop(): its last checkpoint, or if there is none, how it stood. None before the start.
  [[nodiscard]] const std::optional<Saved>& saved() const { return saved_; }
  [[nodiscard]] const std::optional<Replaced>& replaced() const { return replaced_; }
  [[nodiscard]] std::size_t differing() const { return client_.differing(); }

 private:
  [[nodiscard]] std::filesystem::path sent_file() const {
    return options_.sent_logs / ("sent-" + std::to_string(slot_));
  }
  [[nodiscard]] SentUpdates read_sent() const {
    if (options_.sent_logs.empty() || !resumed_) return {};
    return SentLog::read(sent_file()).value();
  }
  ClientOptions client_options() const {
    const std::span bytes = std::as_bytes(workload_.initial_parameters());
    ClientOptions client{.name = name_,
                         .slot = static_cast<std::uint32_t>(slot_),
                         .elements = options_.elements,
                         .layers = engine_setup_of(options_).layers,
                         .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end()),
                         .lanes = 2,
                         .compute = Seconds(0.01),
                         .silence = options_.silence};
    if (!resumed_) return client;
    const bool does_again = options_.local_step == LocalStep::kOurs;
    EXPECT_TRUE(stand_at(resumed_->state, client, does_again ? nullptr : &sent_).ok());
    return client;
  }
  [[nodiscard]] Saved save() const {
    Saved saved{.state = replica_.save()};
    if (options_.ledger != nullptr) saved.taken = options_.ledger->taken(slot_);
    return saved;
  }
  Status begin(Deadline limit) {
    if (!resumed_) return retry([&](Deadline d) { return replica_.start(d); }, limit);
    if (options_.ledger != nullptr) options_.ledger->go_back(slot_, resumed_->taken);
    if (options_.save_every > 0) saved_ = resumed_;
    return replica_.resume(resumed_->state, sent_);
  }
  [[nodiscard]] bool is_done() const {
    return !options_.is_open_ended && replica_.engine().steps_done() >= options_.steps;
  }

  void run() {
    const Deadline limit = deadline_after(hub_test_limit());
    const auto fail = [this](const Error& error) {
      failure_ = error;
      has_failed_ = true;
    };
    if (const Status started = begin(limit); !started.ok()) return fail(started.error());
    while (!is_stopped_ && !is_done()) {
      const Result<StepFacts> facts = replica_.step(deadline_after(Seconds(0.05)));
      if (!facts.ok()) {
        if (facts.error().code == ErrorCode::kDeadline && Clock().now() < limit) continue;
        return fail(facts.error());
      }
      if (facts->replaced) replaced_ = facts->replaced;
      if (facts->stance == Stance::kFinish) break;
      loss_ = facts->loss;
      steps_ = replica_.engine().steps_done();
      if (facts->stance == Stance::kSitOut) ++sat_out_;
      const bool is_due = options_.save_every > 0 && steps_ % options_.save_every == 0;
      if (!is_due && steps_ != options_.save_after) continue;
      saved_ = save();
      if (log_) log_->forget_before(steps_);
    }
    if (!is_stopped_) end(limit);
    if (!has_ended_ && !saved_) saved_ = save();
    EXPECT_TRUE(!log_ || log_->status().ok());
  }
  void end(Deadline limit) {
    const Result<StepFacts> done = retry([&](Deadline d) { return replica_.finish(d); }, limit);
    if (is_stopped_) return;
    if (!done.ok()) {
      failure_ = done.error();
    } else if (done->replaced) {
      replaced_ = done->replaced;
    }
    client_.leave();
    has_ended_ = true;
  }

  template <typename Try>
  auto retry(Try what, Deadline limit) -> decltype(what(limit)) {
    for (;;) {
      auto result = what(deadline_after(Seconds(0.05)));
      if (result.ok() || result.error().code != ErrorCode::kDeadline || is_stopped_ ||
          Clock().now() > limit)
        return result;
    }
  }

  HubRunOptions options_;
  std::size_t slot_;
  std::optional<Saved> resumed_;
  SentUpdates sent_;
  std::string name_;
  Clock clock_;
  Workers workers_{1};
  QuadraticWorkload workload_;
  LedgerLearner learner_;

 public:
  LocalNetwork network;

 private:
  HubClient client_;
  LedgerExchange exchange_;
  std::unique_ptr<SentLog> log_;
  Replica replica_;
  std::optional<Error> failure_;
  std::optional<Saved> saved_;
  std::optional<Replaced> replaced_;
  std::atomic<std::size_t> steps_{0};
  std::atomic<std::size_t> sat_out_{0};
  std::atomic<double> loss_{0};
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> has_failed_{false};
  std::thread thread_;
};

inline constexpr double kHubTolerance = 1e-5;

// Of a run of three in which every replica has always gone on from where it was, or from a
// checkpoint: nothing is lost, and nothing counts twice.
template <typename Run>
void expect_books_in_order(const Run& run, const Ledger& ledger) {
  for (std::size_t slot = 0; slot < 3; ++slot) {
    const TestReplica& replica = run.replica(slot);
    const std::optional<Replaced>& replaced = replica.replaced();
    EXPECT_TRUE(!replaced || (replaced->updates == 0 && replaced->residual == 0)) << slot;
    EXPECT_EQ(replica.differing(), 0U) << slot;
    EXPECT_LT(ledger.imbalance(slot, replica.engine().residual()), kHubTolerance) << slot;
  }
  EXPECT_EQ(ledger.lost(), std::vector<SlotRound>());
  EXPECT_EQ(ledger.counted_twice(), 0U);
  EXPECT_EQ(ledger.closed_twice(), 0U);
  EXPECT_EQ(ledger.wrong_means(), 0U);
}

}  // namespace longhaul::testing
