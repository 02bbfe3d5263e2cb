// Running a test once for each SIMD target that was compiled and that this CPU has.
#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <string>

namespace longhaul {

// Targets that were compiled but cannot run here, by name: "AVX3 AVX3_DL".
inline std::string targets_not_run() {
  std::string names;
  const std::int64_t missing = HWY_TARGETS & ~hwy::SupportedTargets();
  for (std::int64_t left = missing; left != 0; left &= left - 1) {
    names.append(names.empty() ? "" : " ").append(hwy::TargetName(left & -left));
  }
  return names;
}

// Calls body(name of the target) with the dispatch of kernels.h bound to each target in turn.
template <typename Body>
void for_each_simd_target(const Body& body) {
  struct Restore {
    ~Restore() { hwy::SetSupportedTargetsForTest(0); }
  } restore;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    body(std::string(hwy::TargetName(target)));
  }
}

}  // namespace longhaul
