// The run as the thread that answers knows it: the open rounds, the closed ones at hand, and where
// the model stands. The model itself is the keeper's. Knows slots and payloads, and nothing of
// streams.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/hub/model_keeper.h"

namespace longhaul {

class Training {
 public:
  explicit Training(std::unique_ptr<ModelKeeper> keeper);

  // The keeper works inside of errands: while one may be under way, nobody else touches it. Errands
  // hold on to it, as a hub that has failed lets its training go.
  [[nodiscard]] const std::shared_ptr<ModelKeeper>& keeper() const { return keeper_; }

  // The model's, when the last round had closed.
  [[nodiscard]] const Standing& standing() const { return standing_; }
  // Elements of the part of a round, if it is one that a replica can have begun and that is not
  // merged.
  [[nodiscard]] std::optional<std::size_t> open_round(RoundId round) const;
  // The same, also of rounds at hand.
  [[nodiscard]] std::optional<std::size_t> elements_of(RoundId round) const;
  [[nodiscard]] std::optional<std::uint64_t> digest_before(std::uint64_t step) const;

  [[nodiscard]] RoundBook& book() { return book_; }
  [[nodiscard]] const RoundBook& book() const { return book_; }
  // In memory only: the keeper has the one on disk.
  [[nodiscard]] const Journal& journal() const { return journal_; }
  // The updates that members sent in a round, while a member may be better off with it than with
  // the mean.
  [[nodiscard]] const ClosingRound* sent(RoundId round) const;
  // The last update of this slot that is in this round or a later one, closed or not.
  [[nodiscard]] std::optional<Contribution> last_of(std::size_t slot, RoundId from) const;
  // The plan to begin with, and why.
  [[nodiscard]] const Decision& first_decision() const { return first_; }

  // The next round, for the keeper to close; the others wait until it has. Preconditions: the book
  // says that it may close, and none is closing.
  const ClosingRound& begin_closing();
  [[nodiscard]] bool is_closing() const { return closing_.has_value(); }
  void end_closing(const RoundOutcome& closed);

 private:
  std::shared_ptr<ModelKeeper> keeper_;
  Decision first_;
  Standing standing_;
  RoundBook book_;
  Journal journal_;
  std::optional<ClosingRound> closing_;
  std::deque<ClosingRound> sent_;
};

}  // namespace longhaul
