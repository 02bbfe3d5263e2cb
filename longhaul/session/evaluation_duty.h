// A replica's part in evaluating: it scores the shared model while that is its duty, and hears what
// others scored. It belongs to the training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "longhaul/exchange/hub_client.h"
#include "longhaul/job/scenario.h"
#include "longhaul/session/session_observer.h"
#include "longhaul/sync/scorer.h"

namespace longhaul {

class EvaluationDuty {
 public:
  // All outlive it, the settings are copied.
  EvaluationDuty(const EvalOptions& settings, Workload& workload, HubClient& client,
                 SessionObserver& observer)
      : settings_(settings), workload_(workload), client_(client), observer_(observer) {}

  // Has a copy scored where one is due. Training goes on meanwhile.
  void after_step(std::uint64_t steps, std::span<const float> shared);
  // Passes on what has come since the last call.
  void look_around();
  // After the last step, if it is its duty: scores the model on all held-out data, and waits for
  // it.
  void close(std::uint64_t steps, std::span<const float> shared);

 private:
  void tell(const Score& score);

  EvalOptions settings_;
  Workload& workload_;
  HubClient& client_;
  SessionObserver& observer_;
  std::unique_ptr<Scorer> scorer_;  // once it has had the duty
};

}  // namespace longhaul
