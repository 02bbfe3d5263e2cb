// The hub's lines for people. It limits lines that peers can cause again and again.
#pragma once

#include <string>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/base/repeat_filter.h"

namespace longhaul {

class HubLog : public Log {
 public:
  explicit HubLog(Log log) : Log(std::move(log)) {}

  // One line a minute for each thing that happens again and again.
  void warn(const std::string& what, TimePoint now) {
    if (const auto line = repeats_.line_for(what, now)) warning(*line);
  }
  // A replica comes or goes. `is_rude`: it sent something that was rejected, and gets fewer lines.
  void tell_of(const std::string& replica, const std::string& what, bool is_rude, TimePoint now) {
    const std::string kind = "replica " + replica;
    const std::string line = kind + ' ' + what;
    const auto told = is_rude ? repeats_.line_for(line, now)
                              : repeats_.line_of_kind(kind, line, kMostLinesOfAReplica, now);
    if (told) info(*told);
  }

 private:
  static constexpr std::size_t kMostLinesOfAReplica = 10;  // a minute

  RepeatFilter repeats_;
};

}  // namespace longhaul
