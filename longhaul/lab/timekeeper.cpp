#include "longhaul/lab/timekeeper.h"

#include <algorithm>

#include "longhaul/base/check.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kTimelineSteps = 24;
constexpr const char* kTrips = "trips";  // in a checkpoint
constexpr const char* kCountedUntil = "counted_until";
constexpr std::size_t kTripNumbers = 8;

Seconds overlap(Seconds begin, Seconds end, Seconds from, Seconds to) {
  return std::max(Seconds(0), std::min(end, to) - std::max(begin, from));
}

}  // namespace

void add_wait(const RoundTrip& trip, Seconds begin, Seconds end, TimeSpent& spent) {
  const auto part = [&](Seconds from, Seconds to) { return overlap(begin, end, from, to); };
  const Seconds off_line = std::max(trip.sent, trip.arrived - trip.latency);
  const Seconds off_line_down = std::max(trip.closed, trip.back - trip.latency);
  const Seconds sending = part(trip.sent, off_line) + part(trip.closed, off_line_down);
  const Seconds latency = part(off_line, trip.arrived) + part(off_line_down, trip.back);
  spent.sending += sending;
  spent.latency += latency;
  spent.others += std::max(Seconds(0), end - begin - sending - latency);
}

Timekeeper::Timekeeper(RunResult& run, std::vector<Seconds> latencies)
    : run_(run),
      latencies_(std::move(latencies)),
      trips_(latencies_.size()),
      counted_until_(latencies_.size()) {
  run_.spent.resize(latencies_.size());
}

void Timekeeper::add_span(const Span& span) {
  if (span.step < kTimelineSteps && span.end > span.begin) run_.timeline.push_back(span);
}

void Timekeeper::computed(std::size_t step, std::size_t replica, Seconds begin, Seconds end) {
  run_.spent.at(replica).computing += end - begin;
  add_span({.replica = replica,
            .activity = Activity::kCompute,
            .begin = begin,
            .end = end,
            .step = step});
}

void Timekeeper::transferred(const Transfer& transfer) {
  const std::size_t replica = transfer.replica;
  const auto step = static_cast<std::size_t>(transfer.round.step);
  RoundTrip& trip = trips_.at(replica)[transfer.round];
  trip.latency = latencies_[replica];
  (transfer.is_up ? trip.sent : trip.closed) = transfer.begin;
  (transfer.is_up ? trip.arrived : trip.back) = transfer.end;
  if (step < run_.wire.size()) {
    RoundWire& wire = run_.wire[step][transfer.round.part];
    const auto add = [&](std::vector<double>& values, double value) {
      values.resize(latencies_.size());
      values[replica] += value;
    };
    add(transfer.is_up ? wire.up : wire.down, static_cast<double>(transfer.bytes));
    add(transfer.is_up ? wire.up_line_s : wire.down_line_s,
        (transfer.end - transfer.first_byte).count());
  }
  add_span({.replica = replica,
            .activity = transfer.is_up ? Activity::kSend : Activity::kReceive,
            .begin = transfer.begin,
            .end = transfer.end,
            .step = step,
            .part = transfer.round.part,
            .queued = transfer.first_byte - trip.latency - transfer.begin,
            .latency = trip.latency});
}

// Counts the round trips that are over and forgets them. Rounds leave, and their means come, in the
// order of their names.
void Timekeeper::end_trips(std::size_t replica, Seconds now) {
  Seconds& until = counted_until_[replica];
  std::erase_if(trips_[replica], [&](const auto& one) {
    const RoundTrip& trip = one.second;
    // A trip without its way down has no end yet.
    if (!(trip.back > Seconds(0)) || trip.back > now) return false;
    run_.spent[replica].communicating +=
        std::max(Seconds(0), trip.back - std::max(trip.sent, until));
    until = std::max(until, trip.back);
    return true;
  });
}

void Timekeeper::waited(std::size_t step, std::size_t replica, Seconds begin, Seconds end) {
  RoundTrip last;
  std::uint32_t part = 0;
  for (const auto& [round, trip] : trips_.at(replica)) {
    if (trip.back > end || trip.back <= last.back) continue;
    last = trip;
    part = round.part;
  }
  end_trips(replica, end);
  if (end <= begin) return;
  add_wait(last, begin, end, run_.spent.at(replica));
  add_span({.replica = replica,
            .activity = Activity::kWait,
            .begin = begin,
            .end = end,
            .step = step,
            .part = part});
}

void Timekeeper::save(State& state) const {
  std::vector<double> numbers;
  for (std::size_t replica = 0; replica < trips_.size(); ++replica) {
    for (const auto& [round, trip] : trips_[replica])
      numbers.insert(numbers.end(),
                     {static_cast<double>(replica), static_cast<double>(round.step),
                      static_cast<double>(round.part), trip.sent.count(), trip.arrived.count(),
                      trip.closed.count(), trip.back.count(), trip.latency.count()});
  }
  state.values[kTrips] = numbers;
  std::vector<double> until;
  for (const Seconds one : counted_until_) until.push_back(one.count());
  state.values[kCountedUntil] = until;
}

Status Timekeeper::load(const State& state) {
  const auto numbers = LONGHAUL_TRY(state.value<std::vector<double>>(kTrips));
  const auto until = LONGHAUL_TRY(state.value<std::vector<double>>(kCountedUntil));
  const Error damaged{ErrorCode::kMismatch, "a checkpoint with damaged round trips"};
  if (numbers.size() % kTripNumbers != 0 || run_.spent.size() != trips_.size() ||
      until.size() != trips_.size())
    return damaged;
  std::ranges::transform(until, counted_until_.begin(), [](double time) { return Seconds(time); });
  for (std::size_t i = 0; i < numbers.size(); i += kTripNumbers) {
    const double* one = &numbers[i];
    if (!(one[0] >= 0 && one[0] < static_cast<double>(trips_.size()))) return damaged;
    trips_[static_cast<std::size_t>(one[0])][{.step = static_cast<std::uint64_t>(one[1]),
                                              .part = static_cast<std::uint32_t>(one[2])}] = {
        .sent = Seconds(one[3]),
        .arrived = Seconds(one[4]),
        .closed = Seconds(one[5]),
        .back = Seconds(one[6]),
        .latency = Seconds(one[7])};
  }
  return Done{};
}

}  // namespace longhaul::lab
