// The engine against OLCO3's algorithm of two buffers, written down in double: where each replica
// is, what it has told and the shared model, after every step.
#include <gtest/gtest.h>

#include <deque>

#include "tests/sync/cluster.h"

namespace longhaul::testing {
namespace {

constexpr std::size_t kMatrix = 120;
constexpr std::size_t kBookElements = 157;

// What the engine must not do; none: the algorithm.
enum class Fault : std::uint8_t { kNone, kMergesLate, kKeepsOwn, kForgetsHeldBack };

struct BookCase {
  const char* codec = "dense/fp32";
  int delay_steps = 0;
  int period_steps = 4;
  bool returns_some = false;
  double tolerance = 1e-5;
};

bool is_returned(std::size_t replica, RoundId round) { return (round.step + replica) % 3 == 0; }

// x is where a replica is, y what it has told: the shared model without its unmerged messages.
class ByTheBook {
 public:
  ByTheBook(const EngineOptions& options, Workload& workload, const std::vector<float>& weights,
            bool returns_some, Fault fault)
      : options_(options),
        returns_some_(returns_some),
        fault_(fault),
        shared(workload.initial_parameters().begin(), workload.initial_parameters().end()) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      replicas.push_back({.learner = workload.make_learner(i),
                          .codec = make_codec(options.recipe.codec, options.layers, workers_),
                          .weight = static_cast<double>(weights[i]),
                          .x = shared,
                          .y = shared});
      total_weight_ += static_cast<double>(weights[i]);
    }
  }

  void step() {
    for (Replica& replica : replicas) move(replica);
    const auto period = static_cast<std::uint64_t>(options_.recipe.plan.period_steps);
    if ((step_ + 1) % period == 0) send();
    const auto delay = static_cast<std::uint64_t>(options_.recipe.plan.delay_steps) +
                       (fault_ == Fault::kMergesLate ? 1 : 0);
    while (!rounds_.empty() && rounds_.front().step + delay <= step_) merge();
    ++step_;
  }

 private:
  using Doubles = std::vector<double>;
  struct Replica {
    std::unique_ptr<Learner> learner;
    std::unique_ptr<Codec> codec;
    double weight = 1;
    Doubles x;
    Doubles y;
  };
  struct Round {
    std::uint64_t step = 0;
    std::vector<Doubles> messages;
    Doubles mean;
  };

  void move(Replica& replica) const {
    std::ranges::copy(std::vector<float>(replica.x.begin(), replica.x.end()),
                      replica.learner->parameters().begin());
    replica.learner->compute_gradient();
    for (std::size_t j = 0; j < replica.x.size(); ++j)
      replica.x[j] -= options_.lr.peak * static_cast<double>(replica.learner->gradient()[j]);
  }

  // v = y - x;  m = C(v);  y -= m
  void send() {
    Round round{.step = step_, .mean = Doubles(shared.size())};
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      Replica& replica = replicas[i];
      std::vector<float> v(shared.size());
      for (std::size_t j = 0; j < v.size(); ++j)
        v[j] = static_cast<float>(replica.y[j] - replica.x[j]);
      const ByteBuffer payload = replica.codec->take({.residual = v,
                                                      .keep_ratio = options_.recipe.plan.keep_ratio,
                                                      .seed = seed_of_round(options_.seed, step_)});
      std::vector<float> decoded(v.size());
      add(PayloadView::parse(payload, v.size()).value(), 1.0F, decoded);
      const Doubles message(decoded.begin(), decoded.end());
      for (std::size_t j = 0; j < v.size(); ++j) {
        replica.y[j] -= message[j];
        if (fault_ == Fault::kForgetsHeldBack) replica.y[j] = replica.x[j];
        if (!returns(i, step_)) round.mean[j] += replica.weight / total_weight_ * message[j];
      }
      round.messages.push_back(message);
    }
    rounds_.push_back(round);
  }

  // shared -= mean;  y += m_own - mean;  x += m_own - mean; or, if it was returned, y += m_own.
  void merge() {
    const Round& round = rounds_.front();
    for (std::size_t j = 0; j < shared.size(); ++j) shared[j] -= round.mean[j];
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const double in_x = returns(i, round.step) || fault_ == Fault::kKeepsOwn ? 0 : 1;
      for (std::size_t j = 0; j < shared.size(); ++j) {
        replicas[i].y[j] += round.messages[i][j] - round.mean[j];
        replicas[i].x[j] += in_x * round.messages[i][j] - round.mean[j];
      }
    }
    rounds_.pop_front();
  }

  [[nodiscard]] bool returns(std::size_t replica, std::uint64_t step) const {
    return returns_some_ && is_returned(replica, {.step = step});
  }

  EngineOptions options_;
  bool returns_some_;
  Fault fault_;
  Workers workers_{1};
  std::deque<Round> rounds_;
  double total_weight_ = 0;
  std::uint64_t step_ = 0;

 public:
  Doubles shared;
  std::vector<Replica> replicas;
};

EngineOptions book_options(const BookCase& one) {
  EngineOptions options = local_options(
      one.codec,
      {.keep_ratio = 0.1, .delay_steps = one.delay_steps, .period_steps = one.period_steps});
  options.layers = {{.name = "matrix", .offset = 0, .count = kMatrix, .shape = {12, 10}},
                    {.name = "rest", .offset = kMatrix, .count = kBookElements - kMatrix}};
  return options;
}

// The largest difference, in any of the buffers, between the engine and the algorithm.
double largest_difference(const Cluster& cluster, const ByTheBook& book) {
  double most = 0;
  const auto note = [&](float got, double expected) {
    most = std::max(most, std::abs(static_cast<double>(got) - expected));
  };
  for (std::size_t i = 0; i < book.replicas.size(); ++i) {
    const ClusterReplica& replica = cluster.replicas[i];
    for (std::size_t j = 0; j < book.shared.size(); ++j) {
      const float x = replica.learner->parameters()[j];
      note(replica.engine->shared()[j], book.shared[j]);
      note(x, book.replicas[i].x[j]);
      note(x + replica.engine->residual()[j], book.replicas[i].y[j]);
    }
  }
  return most;
}

// Over a run in which at least three rounds are merged.
double difference_of_run(const BookCase& one, Fault fault) {
  const std::vector<float> weights{1, 2, 0.5};
  const EngineOptions options = book_options(one);
  QuadraticWorkload workload(kBookElements, 5);
  Cluster cluster(options, workload, weights);
  ByTheBook book(options, workload, weights, one.returns_some, fault);
  for (std::size_t i = 0; one.returns_some && i < weights.size(); ++i)
    cluster.replicas[i].returning->returns = [i](RoundId round) { return is_returned(i, round); };
  const int steps = 4 * one.period_steps + one.delay_steps;
  double most = 0;
  for (int step = 0; step < steps; ++step) {
    cluster.step();
    book.step();
    most = std::max(most, largest_difference(cluster, book));
    EXPECT_EQ(cluster.replicas[0].exchange->rounds_merged(),
              rounds_merged_after(step + 1, options.recipe.plan));
  }
  EXPECT_EQ(cluster.replicas[0].exchange->rounds_merged(), 4U);
  return most;
}

std::vector<BookCase> all_book_cases() {
  std::vector<BookCase> all;
  for (const char* codec : {"dense/fp32", "top_k/bf16", "top_k/2bit", "low_rank/fp32"}) {
    for (const int period : {1, 4, 7}) {
      for (const int delay : {0, 3, period, 2 * period + 1}) {
        for (const bool returns_some : {false, true}) {
          all.push_back({.codec = codec,
                         .delay_steps = delay,
                         .period_steps = period,
                         .returns_some = returns_some,
                         // Low rank divides by norms, which may be small.
                         .tolerance = codec == std::string_view("low_rank/fp32") ? 1e-4 : 1e-5});
        }
      }
    }
  }
  return all;
}

std::string text_of_case(const BookCase& one) {
  return std::string(one.codec) + " τ=" + std::to_string(one.delay_steps) +
         " H=" + std::to_string(one.period_steps) + (one.returns_some ? ", some returned" : "");
}

TEST(XAndY, AreWhatTheAlgorithmSaysAfterEveryStep) {
  for (const BookCase& one : all_book_cases())
    EXPECT_LT(difference_of_run(one, Fault::kNone), one.tolerance) << text_of_case(one);
}

TEST(XAndY, NoticeAMergeThatIsOneStepLate) {
  for (const BookCase& one : all_book_cases())
    EXPECT_GT(difference_of_run(one, Fault::kMergesLate), 1e-3) << text_of_case(one);
}

TEST(XAndY, NoticeAnOwnMessageThatIsNotSwapped) {
  for (const BookCase& one : all_book_cases()) {
    EXPECT_GT(difference_of_run(one, Fault::kKeepsOwn), 1e-3) << text_of_case(one);
  }
}

TEST(XAndY, NoticeThatWhatWasHeldBackIsForgotten) {
  for (const char* codec : {"top_k/bf16", "low_rank/fp32"})
    EXPECT_GT(difference_of_run({.codec = codec, .delay_steps = 3}, Fault::kForgetsHeldBack), 1e-3);
}

}  // namespace
}  // namespace longhaul::testing
