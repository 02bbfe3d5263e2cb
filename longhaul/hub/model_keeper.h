// Everything of a run that grows with the model: the hub's copy of it, the means, the facts for the
// planner, the journal on disk. It works inside the hub's errands, one at a time. The thread that
// answers holds a Training, which knows the Standing that it was told last.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/workers.h"
#include "longhaul/hub/follower.h"
#include "longhaul/hub/journal.h"
#include "longhaul/plan/planner.h"
#include "longhaul/round/mean_compressor.h"
#include "longhaul/round/round_book.h"
#include "longhaul/round/round_mean.h"

namespace longhaul {

// The training that a hub keeps the model of.
struct TrainingOptions {
  EngineOptions engine;        // as the replicas have it
  std::uint64_t steps = 0;     // of the run; 0: until it is told
  bool may_look_ahead = true;  // false: a planner never does, though the optimizer may allow it
  // In place of make_planner(), for a recipe that has a planner; null: none.
  std::function<std::unique_ptr<Planner>(const PlannerOptions&, RoundSizes)> planner{};
  std::size_t replicas = 1;
  RoundOptions policy;
  std::filesystem::path directory;  // of the journal; empty: in memory only
  JournalOptions journal;
  std::uint64_t run = 0;      // which one the journal is of
  bool accepts_loss = false;  // goes on although rounds that had closed cannot be read any more
};

// A round that has closed, and what follows from it.
struct RoundOutcome {
  JournalRound round;
  std::size_t members = 0;
  RoundSize size;                    // the largest that a member has sent and is sent
  std::vector<TimePoint> arrivals;   // of the updates of its contributors, in the same order
  std::optional<Decision> decision;  // a new plan, which goes with the mean
  bool is_forwarded = false;         // a member is better off with what the others sent
  Standing standing;                 // of the model, with this round
};

class ModelKeeper {
 public:
  // Starts at `initial` with the plan that the planner chooses for these conditions, or the
  // recipe's. An error is the journal's.
  static Result<std::unique_ptr<ModelKeeper>> start(const TrainingOptions& options,
                                                    std::vector<float> initial,
                                                    const Conditions& conditions, Workers& workers);
  // Goes on where an earlier hub was killed. Nothing, if its directory holds none. Refuses if
  // rounds are lost that had closed, unless the options accept it; then it goes on at the last
  // state that can be put together, and keeps what is damaged.
  static Result<std::unique_ptr<ModelKeeper>> resume(const TrainingOptions& options,
                                                     Workers& workers);

  // The same, for those who only look at it: nothing is written.
  static Result<std::unique_ptr<ModelKeeper>> read(const TrainingOptions& options,
                                                   Workers& workers);

  // Sums the round, has it in the journal, and merges it. Its payloads were checked before. An
  // error is the journal's.
  Result<RoundOutcome> close(const ClosingRound& closing, const Conditions& conditions);

  // The run has so many steps, no fewer than its model has done.
  void end_after(std::uint64_t steps) { model_->end_after(steps); }

  [[nodiscard]] const TrainingOptions& options() const { return options_; }
  [[nodiscard]] const Follower& model() const { return *model_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  // The damage that it was resumed in spite of, a sentence each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return left_.notes; }
  // The plan to begin with, and why.
  [[nodiscard]] const Decision& first_decision() const { return first_; }

 private:
  ModelKeeper(const TrainingOptions& options, Decision first, std::unique_ptr<Follower> model,
              std::unique_ptr<MeanCompressor> compressor, Workers& workers);
  static Result<std::unique_ptr<ModelKeeper>> loaded(TrainingOptions options, const State& state,
                                                     Workers& workers);
  bool replay(const JournalRound& round, RoundId closed_until);
  Status replay_all();
  Status start_journal();
  Status keep_journal();

  TrainingOptions options_;
  Workers& workers_;
  Decision first_;
  std::unique_ptr<Follower> model_;
  std::unique_ptr<MeanCompressor> compressor_;  // of two-way recipes
  Journal journal_;
  Journal::Left left_;  // without its state and rounds
  std::unique_ptr<Planner> planner_;
};

}  // namespace longhaul
