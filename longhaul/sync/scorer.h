// Scores copies of the shared model beside training, on a thread of its own at the lowest priority.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "longhaul/base/mailbox.h"
#include "longhaul/base/mutex.h"
#include "longhaul/sync/learner.h"

namespace longhaul {

class Scorer {
 public:
  // Until the scorer is gone nobody else calls evaluate() of the workload, which outlives it.
  Scorer(Workload& workload, std::size_t samples);
  // Waits for the copy that is being scored.
  ~Scorer() { copies_.close(); }
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  // Scores a copy of the model. While an earlier one is being scored it does nothing, so training
  // waits for one copy at most, and never for a score.
  void offer(std::uint64_t step, std::span<const float> shared) EXCLUDES(mutex_);

  // The score that has come since the last call.
  [[nodiscard]] std::optional<Score> take() EXCLUDES(mutex_);

 private:
  void run();

  Workload& workload_;
  const std::size_t samples_;
  Mailbox<std::pair<std::uint64_t, std::vector<float>>> copies_{1};  // a step and its model
  Mutex mutex_;
  bool is_busy_ GUARDED_BY(mutex_) = false;
  std::optional<Score> score_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
