// Records the time line of the first steps, the bytes of each step, and how each replica spent its
// time. All of it comes from events, never from a formula.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/state.h"
#include "longhaul/exchange/simulated.h"
#include "longhaul/lab/results.h"

namespace longhaul::lab {

// An update's way to the hub and the mean's way back, as one replica sees it.
struct RoundTrip {
  Seconds sent{};
  Seconds arrived{};  // at the hub
  Seconds closed{};   // the hub had the updates of all
  Seconds back{};
  Seconds latency{};  // one way
};

// Splits a wait for the mean of that round trip. Parts of the wait outside the trip count as
// waiting for others.
void add_wait(const RoundTrip& trip, Seconds begin, Seconds end, TimeSpent& spent);

// Turns the transfers of a run into time lines.
class Timekeeper {
 public:
  // Writes into `run`, which outlives it. `latencies`: one way, by replica.
  Timekeeper(RunResult& run, std::vector<Seconds> latencies);

  void computed(std::size_t step, std::size_t replica, Seconds begin, Seconds end);
  // Adds to the bytes of its round, if the run has such a step. A mean comes after the update of
  // its replica.
  void transferred(const Transfer& transfer);
  // For the last mean that had arrived by `end`.
  void waited(std::size_t step, std::size_t replica, Seconds begin, Seconds end);

  // The steps that are not over: a run that is resumed needs them.
  void save(State& state) const;
  Status load(const State& state);

 private:
  void add_span(const Span& span);
  void end_trips(std::size_t replica, Seconds now);

  RunResult& run_;
  std::vector<Seconds> latencies_;
  std::vector<std::map<RoundId, RoundTrip>> trips_;  // by replica
  std::vector<Seconds> counted_until_;  // communication up to here is counted; by replica
};

}  // namespace longhaul::lab
