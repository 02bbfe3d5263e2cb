// Prints an event, or a line of the log, for each round that closes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/base/mailbox.h"
#include "longhaul/base/repeat_filter.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {

// Lines for standard output. Whoever reads them may be slow, and the hub must not wait for that:
// what does not fit is dropped.
using Lines = Mailbox<std::string>;
inline constexpr std::size_t kMostLines = 10'000;

// Tells of rounds: on standard output for programs, new plans in the log for people.
class HubWatcher {
 public:
  // `lines` of nothing: for people. Every round is an event only if asked for: there are many.
  HubWatcher(std::shared_ptr<Lines> lines, bool tells_rounds, Log log)
      : lines_(std::move(lines)), tells_rounds_(tells_rounds), log_(std::move(log)) {}

  void operator()(const RoundNews& news);

 private:
  std::shared_ptr<Lines> lines_;  // shared: std::function copies its watcher
  bool tells_rounds_;
  Log log_;
  RepeatFilter repeats_;
  std::optional<TimePoint> start_;
};

}  // namespace longhaul
