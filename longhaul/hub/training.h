// The run itself as the hub knows it: the shared model, the open rounds, the journal of the closed
// ones, and the planner. Knows slots and payloads, and nothing of streams.
#pragma once

#include <cstdint>
#include <deque>
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

struct TrainingSetup {
  EngineSetup engine;          // as the replicas have it
  std::uint64_t steps = 0;     // of the run; 0: until it is told
  bool may_look_ahead = true;  // false: a planner never does, though the optimizer may allow it
  std::size_t replicas = 1;
  RoundPolicy policy;
  std::filesystem::path directory;  // of the journal; empty: in memory only
  JournalLimits journal;
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
Result<LastModel> last_model(const TrainingSetup& setup);

class Training {
 public:
  // Starts at `initial` with the plan that the planner chooses for these conditions, or the
  // recipe's.
  static Result<std::unique_ptr<Training>> start(const TrainingSetup& setup,
                                                 std::vector<float> initial,
                                                 const Conditions& conditions, Workers& workers);
  // Goes on where an earlier hub was killed. Nothing, if its directory holds none. Refuses if
  // rounds are lost that had closed, unless the setup accepts it; then it goes on at the last state
  // that can be put together, and keeps what is damaged.
  static Result<std::unique_ptr<Training>> resume(const TrainingSetup& setup, Workers& workers);

  // The run has so many steps, no fewer than its model has done.
  void end_after(std::uint64_t steps) { model_->end_after(steps); }

  [[nodiscard]] RoundBook& book() { return book_; }
  [[nodiscard]] const RoundBook& book() const { return book_; }
  [[nodiscard]] const Follower& model() const { return *model_; }
  [[nodiscard]] const LayerTable& layers() const { return setup_.engine.layers; }
  [[nodiscard]] const Journal& journal() const { return journal_; }
  // What was damaged when it was resumed, a sentence each.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // What members sent in a round, while a member may be better off with it than with the mean.
  [[nodiscard]] const ClosingRound* sent(RoundId round) const;
  // The last update of this slot that is in this round or a later one, closed or not.
  [[nodiscard]] std::optional<Contributed> last_of(std::size_t slot, RoundId from) const;
  // The plan to begin with, and why.
  [[nodiscard]] const Decision& first_decision() const { return first_; }
  [[nodiscard]] const Plan& first_plan() const { return first_.plan; }

  // Closes the next round. Its payloads were checked before they were submitted. Precondition: the
  // book says that it may close. An error is the journal's.
  Result<RoundOutcome> close_next(const Conditions& conditions);

 private:
  Training(const TrainingSetup& setup, std::vector<float> initial, const Decision& first,
           RoundId first_round, Workers& workers);
  Status start_journal();
  Status keep_journal();

  TrainingSetup setup_;
  Workers& workers_;
  Decision first_;
  std::unique_ptr<Follower> model_;
  std::unique_ptr<MeanCompressor> compressor_;  // of two-way recipes
  RoundBook book_;
  Journal journal_;
  std::vector<std::string> notes_;
  std::unique_ptr<Planner> planner_;
  std::deque<ClosingRound> sent_;
};

}  // namespace longhaul
