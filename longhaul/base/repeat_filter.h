// Limits log lines of one kind, so that a repeated event does not fill a disk. The first lines are
// written at once, the others are counted. Pure: the time comes in.
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
  // The line to write about this occurrence, if any: one a minute, with the number of the others.
  std::optional<std::string> line_for(const std::string& what, TimePoint now);
  // The same for lines that differ and are of one kind: `most` of them a minute. Precondition:
  // `most` is not 0.
  std::optional<std::string> line_of_kind(const std::string& kind, const std::string& line,
                                          std::size_t most, TimePoint now);
  [[nodiscard]] std::size_t kinds() const { return kinds_.size(); }

 private:
  struct Kind {
    TimePoint since;  // of the minute that is counted
    std::size_t told = 0;
    std::uint64_t untold = 0;
  };
  std::string kind_for(const std::string& what, TimePoint now);
  // How many occurrences were left out before this one; nothing: so is this one.
  std::optional<std::uint64_t> left_out_before(const std::string& kind, std::size_t most,
                                               TimePoint now);

  std::map<std::string, Kind> kinds_;
};

}  // namespace longhaul
