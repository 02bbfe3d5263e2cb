// Which lines are worth writing when the same thing happens again and again: the first of its kind
// at once, and then how often, once in a while. Pure: the time comes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

class RepeatFilter {
 public:
  // What to write about this occurrence, if anything.
  std::optional<std::string> line_for(const std::string& what, TimePoint now);
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

 private:
  struct Kind {
    TimePoint told;
    std::uint64_t untold = 0;
  };
  void forget_old(TimePoint now);

  std::map<std::string, Kind> kinds_;
};

}  // namespace longhaul
