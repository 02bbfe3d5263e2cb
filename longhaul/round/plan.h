// The knobs that a recipe sets and a planner may move: what all members of a round agree on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul {

// What happens to a mean when it is due.
enum class Merge : std::uint8_t {
  kOptimizer,  // the optimizer takes a step with it
  kOwnStep,    // the replica stepped with its own gradient at once; the mean takes that one's place
               // (DGA)
  kLate,       // the replica's own optimizer stepped at once, and what it moved was sent; the mean
               // takes that one's place (the late correction)
  kAhead,   // the optimizer takes a step with it, and gradients are computed where that will lead
            // (the look-ahead)
  kOuter,   // an optimizer of the shared model steps with it (DiLoCo)
  kAnchor,  // it moves an anchor, towards which the replica is pulled (Overlap-Local-SGD)
};

// Can a replica take several steps of its own between two updates with it?
constexpr bool has_local_steps(Merge merge) {
  return merge == Merge::kLate || merge == Merge::kOuter || merge == Merge::kAnchor;
}

std::string_view name_of(Merge merge);
std::vector<std::string> merge_names();
Result<Merge> parse_merge(std::string_view name);

struct Plan {
  double keep_ratio = 1.0;  // δ: share of the elements that is sent
  int delay_steps =
      0;  // τ: a mean is merged this many steps after the step its updates were born in
  // H: an update is the delta of this many steps; above 1 only where has_local_steps().
  int period_steps = 1;
  Merge merge = Merge::kOptimizer;

  bool operator==(const Plan&) const = default;
};

}  // namespace longhaul
