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
                      .computing = Seconds(event.at("computing_s").get<double>()),
                      .waiting = Seconds(event.at("waiting_s").get<double>()),
                      .sent = time_in(event, "sent_s", seat.offset),
                      .mean = time_in(event, "mean_s", seat.offset)};
  if (event.at("mean_step").is_number())
    seat.times[step].mean_round = {.step = event.at("mean_step"), .part = event.at("mean_part")};
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

void Rehearsal::fill_in_timeline() {
  std::vector<Seconds> latencies;
  for (const ReplicaOptions& replica : job_->scenario.replicas)
    latencies.push_back(job_->recipe.is_free ? Seconds(0) : replica.link.latency);
  lab::Timekeeper keeper(run_, latencies);
  for (std::size_t slot = 0; slot < seats_.size(); ++slot) {
    Seconds up_free{};
    Seconds down_free{};
    for (const auto& [step, times] : seats_[slot].times) {
      keeper.computed(step, slot, times.computed - times.computing, times.computed);
      const auto& arrived = seats_[slot].arrived;
      for (auto own = arrived.lower_bound({.step = step});
           times.sent && own != arrived.end() && own->first.step == step; ++own)
        keeper.transferred(
            passed(slot, true, own->first, *times.sent, own->second, latencies[slot], up_free));
      const auto merged = closed_.find(times.mean_round);
      if (times.mean && merged != closed_.end())
        keeper.transferred(passed(slot, false, times.mean_round, merged->second, *times.mean,
                                  latencies[slot], down_free));
      // The update is encoded between the gradient and the wait.
      const Seconds begin = std::max(times.computed, times.sent.value_or(times.computed));
      const Seconds end = begin + times.waiting;
      const bool was_awaited = times.mean && *times.mean > begin;
      keeper.waited(step, slot, begin, was_awaited ? std::max(end, *times.mean) : end);
    }
  }
}

}  // namespace longhaul
