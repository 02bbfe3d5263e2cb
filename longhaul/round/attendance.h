// Which steps a replica took part in. Its messages depend on all of them, whether their own
// updates came in time or not: one that resumes from a checkpoint has to do the same steps again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace longhaul {

// Consecutive steps.
struct StepRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool operator==(const StepRange&) const = default;
};

struct Attendance {
  std::uint64_t since = 0;         // nothing is known of the steps before
  std::vector<StepRange> sat_out;  // ascending, with steps between them; it took part in all others

  // Not longer: what lies before the first of more is forgotten.
  static constexpr std::size_t kMostRanges = 64;

  // Precondition: no step before this one is told of later.
  void sit_out(std::uint64_t step);
  [[nodiscard]] bool has(std::uint64_t step) const;
  // As it was in this step.
  [[nodiscard]] Attendance until(std::uint64_t step) const;
  // The claims of another process about an update of this step may be anything.
  [[nodiscard]] bool can_be_of(std::uint64_t step) const;

  bool operator==(const Attendance&) const = default;
};

}  // namespace longhaul
