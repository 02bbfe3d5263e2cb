// When the processes of a rehearsal did what. They share a machine, and so its steady clock.
#include <algorithm>

#include "longhaul/lab/timekeeper.h"
#include "longhaul/rehearsal/rehearsal.h"

namespace longhaul {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRates = 400;

std::optional<Seconds> time_in(const Json& event, const char* key, Seconds offset) {
  const auto found = event.find(key);
  if (found == event.end() || !found->is_number()) return std::nullopt;
  return Seconds(found->get<double>()) + offset;
}

Seconds since_start(TimePoint time) { return time.time_since_epoch(); }

// A line serves one message after the other, and each arrives a latency after it has left the line.
Transfer passed(std::size_t replica, bool is_up, RoundId round, Seconds begin, Seconds end,
                Seconds latency, Seconds& line_free) {
  const Seconds line_end = std::max(begin, end - latency);
  const Seconds line_begin = std::clamp(line_free, begin, line_end);
  line_free = line_end;
  return {.replica = replica,
          .is_up = is_up,
          .round = round,
          .begin = begin,
          .first_byte = line_begin + latency,
          .end = line_end + latency};
}

}  // namespace

void Rehearsal::note_start(Seat& seat, const Json& event) {
  const double at = event.at("monotonic_s");
  if (!zero_s_) zero_s_ = at;
  seat.offset = Seconds(at - *zero_s_);
}

void Rehearsal::note_step(Seat& seat, const Json& event) {
  const std::optional<Seconds> computed = time_in(event, "computed_s", seat.offset);
  if (!computed) return;
  const std::size_t step = event.at("step").get<std::size_t>() - 1;
  seat.times[step] = {.computed = *computed,
                      .computing = Seconds(event.at("computing_s").get<double>())};
  const auto instant = [&](const Json& one, const char* key) -> std::optional<TimePoint> {
    const std::optional<Seconds> time = time_in(one, key, seat.offset);
    if (!time) return std::nullopt;
    return time_after(TimePoint{}, *time);
  };
  for (const Json& one : event.at("rounds"))
    seat.times[step].rounds.push_back({.round = {.step = one.at("step"), .part = one.at("part")},
                                       .sent = instant(one, "sent_s"),
                                       .arrived = instant(one, "mean_s"),
                                       .merged = instant(one, "merged_s").value(),
                                       .waited = Seconds(one.at("waited_s").get<double>())});
}

void Rehearsal::note_round(const Json& event) {
  if (!zero_s_) return;
  const double time_s = event.at("time_s");
  const Seconds offset(event.at("monotonic_s").get<double>() - time_s - *zero_s_);
  const RoundId round{.step = event.at("step"), .part = event.at("part")};
  closed_[round] = Seconds(time_s) + offset;
  for (const Json& one : event.at("contributors")) {
    if (const std::optional<Seconds> arrived = time_in(one, "arrived_s", offset))
      seats_.at(one.at("slot").get<std::size_t>()).arrived[round] = *arrived;
  }
}

// The rate of the slowest link, as the hub estimates it.
void Rehearsal::note_rates() {
  if (!started_ || !view_.status.contains("replicas")) return;
  lab::RatePoint point{.time = time()};
  for (const Json& replica : view_.status.at("replicas")) {
    const auto take = [&](const char* key, double& least) {
      if (!replica.at(key).is_number()) return;
      const double rate = replica.at(key);
      least = least > 0 ? std::min(least, rate) : rate;
    };
    take("up_bits_per_s", point.up_bits_per_s);
    take("down_bits_per_s", point.down_bits_per_s);
  }
  if (point.up_bits_per_s > 0) run_.rates.push_back(point);
  if (run_.rates.size() < 2 * kMostRates) return;
  for (std::size_t i = 0; i < kMostRates; ++i) run_.rates[i] = run_.rates[2 * i];
  run_.rates.resize(kMostRates);
}

// Rounds are told of in the order of their merging. The line has them in the order of their names.
void Rehearsal::fill_in_transfers(std::size_t slot, Seconds latency, lab::Timekeeper& keeper) {
  std::map<RoundId, MergedRound> rounds;
  for (const auto& [step, times] : seats_[slot].times) {
    for (const MergedRound& one : times.rounds) rounds[one.round] = one;
  }
  Seconds up_free{};
  Seconds down_free{};
  for (const auto& [round, times] : rounds) {
    const auto arrived = seats_[slot].arrived.find(round);
    const auto closed = closed_.find(round);
    if (!times.sent || !times.arrived || arrived == seats_[slot].arrived.end() ||
        closed == closed_.end())
      continue;
    keeper.transferred(
        passed(slot, true, round, since_start(*times.sent), arrived->second, latency, up_free));
    keeper.transferred(passed(slot, false, round, closed->second, since_start(*times.arrived),
                              latency, down_free));
  }
}

// A step computes until its gradient is there, but for waits, and may wait after that.
void Rehearsal::fill_in_step(std::size_t slot, std::size_t step, const StepTimes& times,
                             lab::Timekeeper& keeper) {
  Seconds time = times.computed - times.computing;
  for (const MergedRound& one : times.rounds) {
    if (since_start(one.merged) < times.computed) time -= one.waited;
  }
  const auto compute_until = [&](Seconds end) {
    if (end > time) keeper.computed(step, slot, time, end);
    time = std::max(time, end);
  };
  for (const MergedRound& one : times.rounds) {
    const Seconds merged = since_start(one.merged);
    compute_until(std::min(merged - one.waited, times.computed));
    keeper.waited(step, slot, merged - one.waited, merged);
    if (merged < times.computed) time = std::max(time, merged);
  }
  compute_until(times.computed);
}

void Rehearsal::fill_in_timeline() {
  std::vector<Seconds> latencies;
  for (const ReplicaOptions& replica : job_->scenario.replicas)
    latencies.push_back(job_->recipe.is_free ? Seconds(0) : replica.link.latency);
  lab::Timekeeper keeper(run_, latencies);
  for (std::size_t slot = 0; slot < seats_.size(); ++slot) {
    fill_in_transfers(slot, latencies[slot], keeper);
    for (const auto& [step, times] : seats_[slot].times) fill_in_step(slot, step, times, keeper);
  }
}

}  // namespace longhaul
