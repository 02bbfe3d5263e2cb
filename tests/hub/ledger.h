// The books of a run over a hub: what every replica took from its gradients, what it submitted,
// what came back, and what the hub says is in the means.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/exchange.h"
#include "longhaul/hub/hub_core.h"
#include "longhaul/sync/part.h"

namespace longhaul::testing {

using SlotRound = std::pair<std::size_t, RoundId>;

// Callable from every thread.
class Ledger {
 public:
  // `parts`: of the model, as its engines cut it.
  explicit Ledger(std::size_t elements, std::vector<Part> parts = {})
      : elements_(elements), parts_(std::move(parts)) {
    if (parts_.empty()) parts_.push_back({.first = 0, .count = elements});
  }

  void updated(std::size_t slot, const std::vector<double>& update) {
    const MutexLock lock(mutex_);
    std::vector<double>& sum = updates_[slot];
    sum.resize(elements_);
    for (std::size_t i = 0; i < elements_; ++i) {
      sum[i] += update[i];
      magnitudes_[slot] += std::abs(update[i]);
    }
  }
  // What a local step that is the caller's has moved.
  void moved(std::size_t slot, std::uint64_t step, const std::vector<double>& update) {
    const MutexLock lock(mutex_);
    moves_[slot].push_back({.life = lives_[slot], .step = step, .update = update});
    for (const double value : update) magnitudes_[slot] += std::abs(value);
  }
  void submitted(SlotRound what, const CheckedPayload& payload) {
    const MutexLock lock(mutex_);
    Submitted sent{.digest = payload.digest(),
                   .life = lives_[what.first],
                   .values = values_of(what.second, payload)};
    for (const Submitted& earlier : submitted_[what]) {
      if (earlier.digest == sent.digest) sent.life = std::min(sent.life, earlier.life);
    }
    submitted_[what].push_back(std::move(sent));
    undone_.erase(what);
  }
  void collected(SlotRound what, const Mean& mean) {
    const MutexLock lock(mutex_);
    if (!mean.returned.empty()) returned_.insert(what);
    means_[mean.round] = mean.to_vector();
  }
  // From the hub's watcher.
  void closed(const RoundOutcome& outcome) {
    if (outcome.members == 0 && outcome.decision) return;  // the start
    const MutexLock lock(mutex_);
    Round round{.members = outcome.members};
    for (const Contributor& one : outcome.round.contributors)
      round.digests.emplace(one.slot, one.digest);
    if (round.digests.size() != outcome.round.contributors.size()) ++closed_twice_;
    if (!rounds_.emplace(outcome.round.id, std::move(round)).second) ++closed_twice_;
  }

  // What a replica had taken from its gradients: one that goes on from a checkpoint takes what came
  // after it once more.
  struct Taken {
    std::vector<double> sum;
    double magnitude = 0;
    std::set<SlotRound> submitted;
    std::size_t moves = 0;  // of the caller's local steps
  };
  [[nodiscard]] Taken taken(std::size_t slot) const {
    const MutexLock lock(mutex_);
    Taken taken{.submitted = submitted_by(slot)};
    taken.moves = moves_of(slot).size();
    if (!updates_.contains(slot)) return taken;
    taken.sum = updates_.at(slot);
    taken.magnitude = magnitudes_.at(slot);
    return taken;
  }
  void go_back(std::size_t slot, const Taken& taken) {
    const MutexLock lock(mutex_);
    ++lives_[slot];
    const auto moves = moves_.find(slot);
    for (std::size_t i = taken.moves; moves != moves_.end() && i < moves->second.size(); ++i)
      moves->second[i].is_lost = true;
    updates_[slot] = taken.sum;
    if (moves == moves_.end()) magnitudes_[slot] = taken.magnitude;
    for (const SlotRound& what : submitted_by(slot)) {
      if (!taken.submitted.contains(what)) undone_.insert(what);
    }
  }

  [[nodiscard]] std::size_t closed_twice() const {
    const MutexLock lock(mutex_);
    return closed_twice_;
  }
  [[nodiscard]] std::size_t returned() const {
    const MutexLock lock(mutex_);
    return returned_.size();
  }

  // Updates that came back though the hub has them in a mean.
  [[nodiscard]] std::size_t counted_twice() const {
    const MutexLock lock(mutex_);
    std::size_t count = 0;
    for (const SlotRound& what : returned_)
      count += is_in(what, submitted_.at(what).back()) ? 1 : 0;
    return count;
  }

  // Updates that are in no mean, and did not come back either. One that a process submitted between
  // its checkpoint and its end may have died with it: it is in what was taken once more.
  [[nodiscard]] std::vector<SlotRound> lost() const {
    const MutexLock lock(mutex_);
    std::vector<SlotRound> lost;
    for (const auto& [what, sent] : submitted_) {
      const bool is_empty =
          std::ranges::all_of(sent.back().values, [](double v) { return v == 0; });
      if (is_empty) continue;
      if (!is_in(what, sent.back()) && !returned_.contains(what) && !undone_.contains(what))
        lost.push_back(what);
    }
    return lost;
  }

  // |Σ updates - Σ contributions to means - residual| / Σ |update| of a replica that has always
  // gone on from where it was, or from a checkpoint, and has merged everything.
  [[nodiscard]] double imbalance(std::size_t slot, std::span<const float> residual) const {
    const MutexLock lock(mutex_);
    // It may never have come to a step: then there is nothing to hold.
    const auto updates = updates_.find(slot);
    std::vector<double> off = moves_.contains(slot)       ? kept_moves(slot)
                              : updates != updates_.end() ? updates->second
                                                          : std::vector<double>();
    off.resize(elements_);
    for (std::size_t i = 0; i < elements_; ++i) off[i] -= static_cast<double>(residual[i]);
    for (const auto& [id, round] : rounds_) {
      const Submitted* own = taken_from({slot, id});
      if (own == nullptr) continue;
      const std::size_t first = parts_.at(id.part).first;
      for (std::size_t i = 0; i < own->values.size(); ++i) off[first + i] -= own->values[i];
    }
    double sum = 0;
    for (const double value : off) sum += std::abs(value);
    const auto magnitude = magnitudes_.find(slot);
    const bool has_moved = magnitude != magnitudes_.end() && magnitude->second > 0;
    return has_moved ? sum / magnitude->second : sum;
  }

  // Of the caller's local steps: all that a replica moved, but not what its process lost when it
  // ended. Of the steps after a checkpoint those moves are kept that were sent: of each element up
  // to the last update that has it.
  [[nodiscard]] std::vector<double> kept(std::size_t slot) const {
    const MutexLock lock(mutex_);
    return kept_moves(slot);
  }
  [[nodiscard]] std::size_t moves_lost(std::size_t slot) const {
    const MutexLock lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count(moves_of(slot), true, &Move::is_lost));
  }
  // Steps that a process made though one before it had submitted an update of that step or later.
  [[nodiscard]] std::size_t done_again(std::size_t slot) const {
    const MutexLock lock(mutex_);
    std::map<std::size_t, std::uint64_t> ends;  // behind the last that each life submitted first
    for (const auto& [what, sent] : submitted_) {
      if (what.first != slot) continue;
      for (const Submitted& one : sent)
        ends[one.life] = std::max(ends[one.life], what.second.step + 1);
    }
    std::size_t again = 0;
    for (const Move& move : moves_of(slot)) {
      for (const auto& [life, end] : ends) again += life < move.life && move.step < end ? 1 : 0;
    }
    return again;
  }

  // Means that are not the sum of what their contributors sent over the number of members.
  [[nodiscard]] std::size_t wrong_means() const {
    const MutexLock lock(mutex_);
    std::size_t wrong = 0;
    for (const auto& [id, mean] : means_) {
      const auto round = rounds_.find(id);
      if (round != rounds_.end() && !adds_up(mean, id, round->second)) ++wrong;
    }
    return wrong;
  }

 private:
  struct Round {
    std::size_t members = 0;
    std::map<std::size_t, std::uint64_t> digests;  // of what is in it, by slot
  };
  struct Submitted {
    std::uint64_t digest = 0;
    std::size_t life = 0;  // the first that sent it
    std::vector<double> values;
  };
  struct Move {
    std::size_t life = 0;
    std::uint64_t step = 0;
    std::vector<double> update;
    bool is_lost = false;  // with its process: made after the checkpoint that the next one had
  };

  [[nodiscard]] std::span<const Move> moves_of(std::size_t slot) const REQUIRES(mutex_) {
    const auto moves = moves_.find(slot);
    return moves == moves_.end() ? std::span<const Move>() : std::span(moves->second);
  }
  [[nodiscard]] std::vector<double> kept_moves(std::size_t slot) const REQUIRES(mutex_) {
    std::map<std::size_t, std::vector<std::uint64_t>> ends;  // by life and element
    for (const auto& [what, sent] : submitted_) {
      if (what.first != slot) continue;
      for (const Submitted& one : sent) {
        std::vector<std::uint64_t>& end = ends[one.life];
        end.resize(elements_);
        for (std::size_t i = 0; i < one.values.size(); ++i) {
          std::uint64_t& last = end[parts_.at(what.second.part).first + i];
          if (one.values[i] != 0) last = std::max(last, what.second.step + 1);
        }
      }
    }
    std::vector<double> kept(elements_);
    for (const Move& move : moves_of(slot)) {
      const auto end = ends.find(move.life);
      for (std::size_t i = 0; i < elements_; ++i) {
        const bool was_sent = end != ends.end() && move.step < end->second[i];
        if (!move.is_lost || was_sent) kept[i] += move.update[i];
      }
    }
    return kept;
  }

  [[nodiscard]] bool is_in(SlotRound what, const Submitted& sent) const REQUIRES(mutex_) {
    const auto round = rounds_.find(what.second);
    if (round == rounds_.end()) return false;
    const auto digest = round->second.digests.find(what.first);
    return digest != round->second.digests.end() && digest->second == sent.digest;
  }
  // Of what a replica submitted to a round, in one or several lives, that which is in the mean.
  [[nodiscard]] const Submitted* taken_from(SlotRound what) const REQUIRES(mutex_) {
    const auto all = submitted_.find(what);
    if (all == submitted_.end()) return nullptr;
    const auto found = std::ranges::find_if(
        all->second, [&](const Submitted& one) REQUIRES(mutex_) { return is_in(what, one); });
    return found == all->second.end() ? nullptr : &*found;
  }

  [[nodiscard]] std::set<SlotRound> submitted_by(std::size_t slot) const REQUIRES(mutex_) {
    std::set<SlotRound> submitted;
    for (const auto& [what, sent] : submitted_) {
      if (what.first == slot) submitted.insert(what);
    }
    return submitted;
  }
  [[nodiscard]] std::vector<double> values_of(RoundId round, const CheckedPayload& payload) const {
    std::vector<float> values(parts_.at(round.part).count);
    if (!payload.empty()) add(payload.view(), 1.0F, values);
    return {values.begin(), values.end()};
  }
  [[nodiscard]] bool adds_up(std::span<const float> mean, RoundId id, const Round& round) const
      REQUIRES(mutex_) {
    std::vector<double> rest(parts_.at(id.part).count);
    if (mean.size() != rest.size()) return false;
    for (std::size_t i = 0; i < rest.size(); ++i)
      rest[i] = static_cast<double>(mean[i]) * static_cast<double>(round.members);
    for (const auto& [slot, digest] : round.digests) {
      const Submitted* sent = taken_from({slot, id});
      if (sent == nullptr) return false;
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= sent->values[i];
    }
    return std::ranges::all_of(rest, [](double v) { return std::abs(v) < 1e-4; });
  }

  const std::size_t elements_;
  std::vector<Part> parts_;
  mutable Mutex mutex_;
  std::map<std::size_t, std::vector<double>> updates_ GUARDED_BY(mutex_);
  std::map<std::size_t, double> magnitudes_ GUARDED_BY(mutex_);
  std::map<SlotRound, std::vector<Submitted>> submitted_ GUARDED_BY(mutex_);
  std::set<SlotRound> undone_
      GUARDED_BY(mutex_);  // by going back to a checkpoint, and not done again
  std::set<SlotRound> returned_ GUARDED_BY(mutex_);
  std::map<RoundId, std::vector<float>> means_ GUARDED_BY(mutex_);
  std::map<RoundId, Round> rounds_ GUARDED_BY(mutex_);
  std::size_t closed_twice_ GUARDED_BY(mutex_) = 0;
  std::map<std::size_t, std::vector<Move>> moves_ GUARDED_BY(mutex_);  // the caller's
  std::map<std::size_t, std::size_t> lives_ GUARDED_BY(mutex_);
};

// Passes everything on and writes it down.
class LedgerExchange final : public Exchange {
 public:
  LedgerExchange(Exchange& inner, Ledger* ledger, std::size_t slot)
      : inner_(inner), ledger_(ledger), slot_(slot) {}

  void submit(Update update) override {
    if (ledger_ != nullptr) ledger_->submitted({slot_, update.round}, update.payload);
    inner_.submit(std::move(update));
  }
  Result<Mean> collect(RoundId round, Deadline deadline) override {
    Result<Mean> mean = inner_.collect(round, deadline);
    if (!mean.ok()) return mean;
    if (ledger_ != nullptr) ledger_->collected({slot_, round}, *mean);
    if (loses_returned) mean->returned = {};
    if (announced) mean->next_plan = announced;
    return mean;
  }

  bool loses_returned = false;      // to see that the books notice
  std::optional<Plan> announced{};  // with every mean, as if a planner had

 private:
  Exchange& inner_;
  Ledger* ledger_;
  std::size_t slot_;
};

}  // namespace longhaul::testing
