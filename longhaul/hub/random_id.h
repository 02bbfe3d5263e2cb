// Numbers that nobody guesses: of sessions and runs.
#pragma once

#include <cstdint>
#include <random>

namespace longhaul {

// Never 0, which stands for none.
inline std::uint64_t random_id() {
  std::random_device source;
  const std::uint64_t id = (std::uint64_t{source()} << 32U) | source();
  return id == 0 ? 1 : id;
}

}  // namespace longhaul
