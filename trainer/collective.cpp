#include "trainer/collective.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"

namespace longhaul::trainer {
namespace {

constexpr std::size_t kMostWaiting = 1U << 20U;  // updates: far more than any plan has in flight
constexpr int kProbes = 4;
constexpr std::size_t kProbeBytes = 256UL * 1024;

// No codec needs more than four values for an element.
std::uint64_t most_bytes(std::uint64_t elements) { return 4096 + 16 * elements; }

std::string rank_text(std::size_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

Collective::Collective(CollectiveOptions options, AllGather gather, const Clock& clock,
                       AllReduce reduce)
    : options_(std::move(options)),
      gather_(std::move(gather)),
      reduce_(std::move(reduce)),
      clock_(clock),
      start_(clock.now()),
      outbox_(kMostWaiting) {
  LONGHAUL_CHECK_EQ(options_.weights.size(), options_.engine.replicas);
  LONGHAUL_CHECK(options_.engine.slot < options_.weights.size());
  LONGHAUL_CHECK_EQ(options_.engine.averages_in_place, averages_in_place());
  if (options_.engine.recipe.is_two_way)
    compressor_ = make_mean_compressor(options_.engine, options_.elements, workers_);
  if (options_.engine.recipe.planner != PlannerKind::kNone)
    planner_ =
        std::make_unique<CollectivePlanner>(options_.engine, options_.elements, options_.computing);
}

Result<std::unique_ptr<Collective>> Collective::start(const CollectiveOptions& options,
                                                      AllGather gather, const Clock& clock,
                                                      AllReduce reduce) {
  std::unique_ptr<Collective> made(new Collective(  // NOLINT: private constructor
      options, std::move(gather), clock, std::move(reduce)));
  LONGHAUL_TRY(made->planner_ ? made->measure() : Status(Done{}));
  made->thread_ = std::jthread([collective = made.get()] { collective->run(); });
  return made;
}

Collective::~Collective() { outbox_.close(); }

// A few payloads that mean nothing, to know the links before the first plan.
Status Collective::measure() {
  for (int i = 0; i <= kProbes; ++i) {
    const std::vector<Turn> turns = LONGHAUL_TRY(gather_turns({}));
    planner_->note(turns);
    if (i == kProbes) break;
    LONGHAUL_TRY(probe());
  }
  const MutexLock lock(mutex_);
  decisions_.emplace_back(RoundId{}, planner_->first());
  return Done{};
}

Status Collective::probe() {
  if (reduce_) {
    std::vector<float> values(kProbeBytes / sizeof(float));
    return average(values);
  }
  (void)LONGHAUL_TRY(gather_payload(ByteBuffer(kProbeBytes)));
  return Done{};
}

void Collective::run() {
  while (std::optional<Update> update = outbox_.pop()) {
    Status done = turn(*update);
    if (done.ok()) continue;
    {
      const MutexLock lock(mutex_);
      // A member whose state was replaced is told so by kMismatch: that is not the case here.
      failure_ = Error{ErrorCode::kClosed, done.error().message};
    }
    changed_.notify_all();
    return;
  }
}

Result<std::vector<Turn>> Collective::gather_turns(const Update& update) {
  own_.round = update.round;
  own_.elements = update.elements;
  own_.bytes = update.payload.size();
  own_.clock = clock_.now() - start_;
  {
    const MutexLock lock(mutex_);
    own_.computing = computing_;
    own_.kept = kept_;
  }
  const TimePoint begin = clock_.now();
  const std::vector<ByteBuffer> gathered = LONGHAUL_TRY(gather_(to_bytes(own_)));
  own_.header_time = clock_.now() - begin;
  own_.payload_time = Seconds(0);
  own_.payload_bytes = 0;
  LONGHAUL_CHECK_EQ(gathered.size(), options_.weights.size());
  std::vector<Turn> turns;
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
    Result<Turn> turn = turn_from_bytes(gathered[rank]);
    if (!turn.ok()) return std::move(turn).error().within(rank_text(rank));
    if (turn->elements > options_.elements || turn->bytes > most_bytes(turn->elements))
      return Error{ErrorCode::kCorruptPayload,
                   rank_text(rank) + ": an update of more than the model"};
    turns.push_back(*turn);
  }
  return turns;
}

Result<std::vector<ByteBuffer>> Collective::gather_payload(ByteView padded) {
  const TimePoint begin = clock_.now();
  Result<std::vector<ByteBuffer>> gathered = gather_(padded);
  own_.payload_time = clock_.now() - begin;
  own_.payload_bytes = padded.size();
  return gathered;
}

Result<std::vector<CheckedPayload>> Collective::payloads_of(const std::vector<Turn>& turns,
                                                            const Update& update) {
  std::vector<CheckedPayload> payloads(turns.size());
  const std::size_t longest = std::ranges::max(turns, {}, &Turn::bytes).bytes;
  if (longest == 0) return payloads;
  ByteBuffer padded = *update.payload.bytes();
  const std::size_t bytes = padded.size();
  padded.resize(longest);
  std::fill(padded.begin() + static_cast<std::ptrdiff_t>(bytes), padded.end(), std::byte{0});
  std::vector<ByteBuffer> gathered = LONGHAUL_TRY(gather_payload(padded));
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    if (rank == options_.engine.slot) {
      payloads[rank] = update.payload;
      continue;
    }
    ByteBuffer& received = gathered[rank];
    received.resize(turns[rank].bytes);
    Result<CheckedPayload> checked =
        CheckedPayload::check_update(std::move(received), turns[rank].elements);
    if (!checked.ok())
      return std::move(checked).error().within(rank_text(rank) + ", round " +
                                               to_string(turns[rank].round));
    payloads[rank] = std::move(checked).value();
  }
  return payloads;
}

Status Collective::turn(const Update& update) {
  const std::vector<Turn> turns = LONGHAUL_TRY(gather_turns(update));
  std::vector<CheckedPayload> payloads = LONGHAUL_TRY(payloads_of(turns, update));
  if (planner_) planner_->note(turns);
  // Ranks may send the parts of a step in different orders.
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    const Turn& turn = turns[rank];
    OpenRound& round = open_[turn.round];
    if (round.sent.empty()) {
      for (const float weight : options_.weights) round.sent.push_back({.weight = weight});
      round.elements = turn.elements;
    }
    if (turn.elements != round.elements)
      return Error{ErrorCode::kMismatch,
                   rank_text(rank) + ": round " + to_string(turn.round) + " has another size"};
    round.sent[rank].payload = std::move(payloads[rank]);
    if (rank == options_.engine.slot) round.in_place = update.in_place;
    ++round.arrived;
  }
  for (auto next = open_.begin(); next != open_.end();) {
    const auto round = next++;
    if (round->second.arrived < options_.weights.size()) continue;
    LONGHAUL_TRY(close(round->first, round->second, turns));
    open_.erase(round);
  }
  return Done{};
}

// By the weights of all ranks.
Status Collective::average(std::span<float> values) {
  const float own = options_.weights[options_.engine.slot];
  const float all = std::accumulate(options_.weights.begin(), options_.weights.end(), 0.0F);
  if (own != 1.0F) std::ranges::for_each(values, [own](float& value) { value *= own; });
  const TimePoint begin = clock_.now();
  LONGHAUL_TRY(reduce_(values));
  own_.payload_time += clock_.now() - begin;
  own_.payload_bytes += values.size_bytes();
  std::ranges::for_each(values, [all](float& value) { value /= all; });
  return Done{};
}

Result<Mean> Collective::mean_of(RoundId id, const OpenRound& round,
                                 std::optional<Decision>& decision) {
  if (reduce_) {
    LONGHAUL_TRY(average(round.in_place));
    if (planner_) decision = planner_->round_averaged();
    return Mean{.round = id, .arrived = clock_.now(), .in_place = round.in_place};
  }
  RoundMean mean = mean_of_round(round.sent, round.elements, workers_);
  if (planner_) decision = planner_->round_closed(id, round.sent, mean.payload);
  if (compressor_) compressor_->compress(mean, id.step);
  return Mean{.round = id, .terms = {{.payload = mean.payload}}, .arrived = clock_.now()};
}

Status Collective::close(RoundId id, const OpenRound& round, const std::vector<Turn>& turns) {
  std::optional<Decision> decision;
  Mean arriving = LONGHAUL_TRY(mean_of(id, round, decision));
  {
    const MutexLock lock(mutex_);
    if (decision) {
      arriving.next_plan = decision->plan;
      decisions_.emplace_back(id, std::move(*decision));
    }
    closed_[id] = {.mean = std::move(arriving),
                   .time = turns.front().clock,
                   .kept = std::ranges::min(turns, {}, &Turn::kept).kept};
  }
  changed_.notify_all();
  return Done{};
}

void Collective::submit(Update update) {
  {
    const MutexLock lock(mutex_);
    ++in_flight_;
  }
  LONGHAUL_CHECK(outbox_.try_push(std::move(update)));
}

Status Collective::await(RoundId round, Deadline deadline) {
  const MutexLock lock(mutex_);
  const auto is_there = [this, round]() REQUIRES(mutex_) {
    return failure_.has_value() || closed_.contains(round);
  };
  const bool is_in_time = changed_.wait_until(mutex_, deadline, is_there);
  if (closed_.contains(round)) return Done{};
  if (failure_) return *failure_;
  LONGHAUL_CHECK(!is_in_time);
  return Error{ErrorCode::kDeadline, "round " + to_string(round) + " has not closed"};
}

Result<Mean> Collective::collect(RoundId round, Deadline deadline) {
  LONGHAUL_TRY(await(round, deadline));
  const MutexLock lock(mutex_);
  Closed closed = std::move(closed_.extract(round).mapped());
  --in_flight_;
  common_time_ = std::max(common_time_, closed.time);
  kept_by_all_ = std::max(kept_by_all_, closed.kept);
  return std::move(closed.mean);
}

Result<std::optional<Plan>> Collective::first_plan(Deadline /*deadline*/) {
  const MutexLock lock(mutex_);
  return std::optional(decisions_.empty() ? options_.engine.recipe.plan
                                          : decisions_.front().second.plan);
}

Result<Stance> Collective::stance(std::uint64_t step, RoundId /*round*/, Deadline /*deadline*/) {
  const MutexLock lock(mutex_);
  if (failure_) return *failure_;
  return step < options_.steps ? Stance::kTakePart : Stance::kFinish;
}

State Collective::take_snapshot() {
  LONGHAUL_CHECK(false);  // it never says kRestart
  return {};
}

std::size_t Collective::updates_in_flight() const {
  const MutexLock lock(mutex_);
  return in_flight_;
}

void Collective::report(const StepReport& report) {
  const MutexLock lock(mutex_);
  if (report.computing.count() > 0) computing_ = report.computing;
}

void Collective::keep(std::uint64_t step) {
  const MutexLock lock(mutex_);
  kept_ = step;
}

std::vector<std::pair<RoundId, Decision>> Collective::take_decisions() {
  const MutexLock lock(mutex_);
  return std::exchange(decisions_, {});
}

}  // namespace longhaul::trainer
