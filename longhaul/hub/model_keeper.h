// Everything of a run that grows with the model: the hub's copy of it, the means, the facts for the
// planner, the journal on disk. It works inside the hub's errands, one at a time. The thread that
// answers holds a Training, which knows the Standing that it was told last.
#pragma once

#include <cstdint>
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

struct TrainingOptions {
  EngineOptions engine;        // as the replicas have it
  std::uint64_t steps = 0;     // of the run; 0: until it is told
  bool may_look_ahead = true;  // false: a planner never does, though the optimizer may allow it
  std::size_t replicas = 1;
  RoundOptions policy;
  std::filesystem::path directory;  // of the journal; empty: in memory only
  JournalOptions journal;
  std::uint64_t run = 0;      // which one the journal is of
  bool accepts_loss = false;  // goes on although rounds that had closed cannot be read any more
};

// A round that has closed.
struct RoundOutcome {
  RoundId round;
  RoundId from;  // no other round closed from this one on
  RoundId next;  // that closes after it
  std::size_t members = 0;
  RoundSize size;  // the largest that a member has sent and is sent
  std::vector<Contributor> contributors;
  std::vector<TimePoint> arrivals;   // of their updates, in the same order
  std::optional<Decision> decision;  // a new plan, which goes with the mean
};

// What a hub's directory holds, without a hub. Nothing is written.
struct LastModel {
  std::unique_ptr<Follower> model;  // nothing, if there is none
  LayerTable layers;
  std::vector<std::string> notes;  // what is damaged, a sentence each
};
Result<LastModel> last_model(const TrainingOptions& options);

class ModelKeeper {
 public:
  // Starts at `initial` with the plan that the planner chooses for these conditions, or the
  // recipe's. An error is the journal's.
  static Result<std::unique_ptr<ModelKeeper>> start(const TrainingOptions& options,
                                                    std::vector<float> initial,
                                                    const Conditions& conditions, Workers& workers);
  // Goes on where an earlier hub was killed. Nothing, if its directory holds none. Refuses if
  // rounds are lost that had closed, unless the options accepts it; then it goes on at the last
  // state that can be put together, and keeps what is damaged.
  static Result<std::unique_ptr<ModelKeeper>> resume(const TrainingOptions& options,
                                                     Workers& workers);

  // A round that has closed, and what follows from it.
  struct Closed {
    RoundOutcome outcome;
    JournalRound round;
    bool is_forwarded = false;  // a member is better off with what the others sent
    Standing standing;
  };
  // Sums the round, has it in the journal, and merges it. Its payloads were checked before. An
  // error is the journal's.
  Result<Closed> close(const ClosingRound& closing, const Conditions& conditions);

  // The run has so many steps, no fewer than its model has done.
  void end_after(std::uint64_t steps) { model_->end_after(steps); }

  [[nodiscard]] const TrainingOptions& options() const { return options_; }
  [[nodiscard]] const Follower& model() const { return *model_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  // What was damaged when it was resumed, a sentence each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // The plan to begin with, and why.
  [[nodiscard]] const Decision& first_decision() const { return first_; }

 private:
  ModelKeeper(const TrainingOptions& options, const Decision& first,
              std::unique_ptr<Follower> model, std::unique_ptr<MeanCompressor> compressor,
              Workers& workers);
  Status start_journal();
  Status keep_journal();

  TrainingOptions options_;
  Workers& workers_;
  Decision first_;
  std::unique_ptr<Follower> model_;
  std::unique_ptr<MeanCompressor> compressor_;  // of two-way recipes
  Journal journal_;
  std::vector<std::string> notes_;
  std::unique_ptr<Planner> planner_;
};

}  // namespace longhaul
