// The books of a replica, as JSON lines in a file: what it submitted, what came back, what it
// merged, and whether its account balances at the end. tests/e2e/books.py adds up the books of all.
//
// Vectors are written as two numbers that are linear in them, so that the books add up where the
// vectors do: their sum, and their product with a fixed random vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/exchange/exchange.h"
#include "longhaul/sync/replica.h"

namespace longhaul {

// Notes all that a replica took and merged, for tests.
// It belongs to the training thread of one replica. It stands between the engine on the one side,
// the learner and the hub on the other, and passes everything on.
class Book final : private Learner, private Exchange {
 public:
  // Adds to the file: several replicas and processes may do so. Each entry is in the file at once,
  // also if the process is killed then. An empty path: no book is kept. Learner and exchange
  // outlive the book.
  Book(const std::string& path, std::size_t slot, Learner& learner, Exchange& exchange);

  // The replica is to be given these two.
  [[nodiscard]] Learner& learner() {
    if (file_.is_open()) return *this;
    return learner_;
  }
  [[nodiscard]] Exchange& exchange() {
    if (file_.is_open()) return *this;
    return exchange_;
  }
  // Before its first step.
  void watch(const Replica& replica, double clip);
  // After its last mean.
  void finish();

  bool loses_returned = false;  // to see that the books notice

 private:
  [[nodiscard]] std::span<float> parameters() override { return learner_.parameters(); }
  [[nodiscard]] std::span<float> gradient() override { return learner_.gradient(); }
  double compute_gradient() override;
  [[nodiscard]] std::uint32_t passes() const override { return learner_.passes(); }
  void save(State& state) const override { learner_.save(state); }
  Status load(const State& state) override { return learner_.load(state); }
  void submit(Update update) override;
  Result<Mean> collect(RoundId round, Deadline deadline) override;

  void begin_life();
  void settle(const Mean& mean);
  // One value per element of the model; zero outside the part.
  [[nodiscard]] std::vector<float> values_of(RoundId round, const CheckedPayload& payload) const;
  // The fields that every entry begins with.
  [[nodiscard]] nlohmann::ordered_json entry(RoundId round) const;

  std::ofstream file_;
  std::size_t slot_;
  Learner& learner_;
  Exchange& exchange_;
  const Replica* replica_ = nullptr;
  // A process begins, or its state is replaced: residual and updates on their way are gone.
  std::size_t life_ = 0;
  std::size_t restarts_ = 0;
  bool is_exact_ = true;                    // every gradient went to the residual as it was
  std::vector<double> account_;             // Σ gradients - Σ contributions to means
  double magnitude_ = 0;                    // Σ |gradient|
  std::map<RoundId, CheckedPayload> sent_;  // not collected yet
};

}  // namespace longhaul
