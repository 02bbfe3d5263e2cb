#include "longhaul/hub/follower.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

constexpr std::size_t kDigests = 64;

EngineOptions without_gradients(EngineOptions options) {
  options.computes = false;
  return options;
}

}  // namespace

Result<Mean> Follower::Shelf::collect(RoundId round, Deadline /*deadline*/) {
  const auto found = means.find(round);
  if (found == means.end())
    return Error{ErrorCode::kDeadline, "round " + to_string(round) + " has not closed"};
  Mean mean = std::move(found->second);
  means.erase(found);
  return mean;
}

Follower::Follower(const EngineOptions& options, std::vector<float> initial,
                   std::optional<std::uint64_t> steps)
    : parameters_(std::move(initial)),
      plan_(options.recipe.plan),
      steps_(steps),
      engine_(without_gradients(options), parameters_, shelf_, workers_) {
  note_digest();
  go_on();
}

Status Follower::load(const State& state) {
  Status loaded = engine_.load_shared(state);
  if (!loaded.ok()) return loaded;
  plan_ = engine_.announced();
  digests_.clear();  // of the model that it was made with, which may be any
  if (step() != steps_)
    note_digest();  // at the end some rounds may be merged that replicas wait for
  go_on();
  return Done{};
}

void Follower::closed(Mean mean) {
  if (mean.next_plan) plan_ = *mean.next_plan;
  shelf_.means.emplace(mean.round, std::move(mean));
  go_on();
}

void Follower::end_after(std::uint64_t steps) {
  LONGHAUL_CHECK_GE(steps, step());
  steps_ = steps;
  go_on();
}

RoundId Follower::next_round() const {
  return engine_.in_flight().empty() ? engine_.next_rounds().front() : engine_.in_flight().front();
}

// Rounds close in order, so one that waits for another of its step is on the shelf only after it.
RoundId Follower::next_to_close() const {
  const auto is_open = [&](const RoundId& round) { return !shelf_.means.contains(round); };
  const auto in_flight = std::ranges::find_if(engine_.in_flight(), is_open);
  if (in_flight != engine_.in_flight().end()) return *in_flight;
  const std::vector<RoundId> next = engine_.next_rounds();
  return *std::ranges::find_if(next, is_open);
}

std::optional<std::size_t> Follower::open_round(RoundId round) const {
  const bool is_in_flight = std::ranges::binary_search(engine_.in_flight(), round);
  // After the last step comes no round.
  const bool is_next = step() != steps_ && round.step == step() &&
                       std::ranges::binary_search(engine_.next_rounds(), round);
  if (!is_in_flight && !is_next) return std::nullopt;
  return engine_.part(round.part).count;
}

Standing Follower::standing() const {
  Standing standing{.step = step(),
                    .next_round = next_round(),
                    .next_to_close = next_to_close(),
                    .open = {engine_.in_flight().begin(), engine_.in_flight().end()},
                    .part_elements = {},
                    .plan = plan_,
                    .digests = digests_};
  for (std::uint32_t part = 0; part < engine_.parts(); ++part)
    standing.part_elements.push_back(engine_.part(part).count);
  for (const RoundId& round : engine_.next_rounds()) {
    if (open_round(round)) standing.open.push_back(round);
  }
  return standing;
}

bool Follower::is_waiting() const {
  const auto is_missing = [&](const RoundId& round) {
    return engine_.is_due(round) && !shelf_.means.contains(round);
  };
  return std::ranges::any_of(engine_.in_flight(), is_missing) ||
         std::ranges::any_of(engine_.next_rounds(), is_missing);
}

// A step is done when all that is due in it has come, and not begun before: so its state is always
// that of a replica between two steps.
void Follower::go_on() {
  while (step() != steps_) {
    if (is_waiting()) return;
    engine_.sit_out();
    LONGHAUL_CHECK(engine_.end_step().ok());
    note_digest();
  }
  const Status drained = engine_.drain();
  LONGHAUL_CHECK(drained.ok() || drained.error().code == ErrorCode::kDeadline);
}

void Follower::note_digest() {
  if (step() % kDigestEvery != 0) return;
  digests_[step()] = digest_of(shared());
  if (digests_.size() > kDigests) digests_.erase(digests_.begin());
}

std::optional<std::uint64_t> Follower::digest_before(std::uint64_t step) const {
  const auto found = digests_.find(step);
  if (found == digests_.end()) return std::nullopt;
  return found->second;
}

}  // namespace longhaul
