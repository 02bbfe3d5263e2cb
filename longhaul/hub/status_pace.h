// Decides when a hub prints its next `status` event. Pure: status and time come in.
//
// A status with news about replicas or refusals is due at once, but at most one a second. After it
// the gaps double, from a second up to `longest`. Bytes, rates and steps change all the time, and a
// run of weeks must not fill a disk with them.
#pragma once

#include <algorithm>
#include <string>

#include "longhaul/hub/hub_core.h"

namespace longhaul {

class StatusPace {
 public:
  explicit StatusPace(Seconds longest) : longest_(longest), gap_(shortest()) {}

  // Whether to print this status now. True: it counts as printed.
  bool is_due(const HubStatus& status, TimePoint now);

 private:
  [[nodiscard]] Seconds shortest() const { return std::min(longest_, Seconds(1.0)); }

  Seconds longest_;
  Seconds gap_;  // until the next one, if nothing happens
  TimePoint printed_;
  std::string news_;  // of the last one; empty: there was none
};

}  // namespace longhaul
