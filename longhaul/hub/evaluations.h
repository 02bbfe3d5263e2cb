// Scores of the shared model. One member scores it: the one of the lowest slot. Scores are accepted
// only from replicas that were named, and only newer ones. Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "longhaul/hub/roster.h"
#include "longhaul/sync/target.h"

namespace longhaul {

class Evaluations {
 public:
  // Without `is_on` nobody is named.
  Evaluations(bool is_on, const TargetOptions& target) : is_on_(is_on), target_(target) {}

  // Names another member if the one of the lowest slot has changed. Nobody any more, once the last
  // model is scored.
  void name_evaluator(Roster& roster);
  // Its connection ends.
  void forget(const Peer& peer);

  // Can it be? `reached`: the step that the model stands at. `may_close`: that is the end.
  static bool is_possible(const v1::Evaluation& evaluation, std::uint64_t reached, bool may_close);
  // False: it is not newer than the last one. `time`: since the run started.
  bool take(const v1::Evaluation& evaluation, Seconds time);

  // At the end, of all held-out data.
  [[nodiscard]] const std::optional<v1::Evaluation>& last() const { return last_; }
  [[nodiscard]] const TargetOptions& target() const { return target_; }
  // The target's metric, over the last three.
  [[nodiscard]] std::optional<double> smoothed() const;
  [[nodiscard]] bool has_reached_target() const {
    return target_reached(target_, recent_).has_value();
  }

 private:
  bool is_on_;
  TargetOptions target_;
  Peer* evaluator_ = nullptr;
  std::uint64_t changes_seen_ = 0;  // of the roster
  std::vector<EvalPoint> recent_;   // the last three of this hub's life
  std::optional<v1::Evaluation> last_;
};

}  // namespace longhaul
