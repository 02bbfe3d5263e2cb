// Events as JSON lines: one object per line, whose first key "event" names it. Reports and
// dashboards are drawn from them.
#pragma once

#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul {

class EventLog {
 public:
  // Writes to `out`, which outlives it; every event is flushed, so that a run that is killed leaves
  // what it did.
  explicit EventLog(std::ostream& out) : out_(out) {}

  // Precondition: `fields` is an object without a key "event".
  void write(std::string_view event, const nlohmann::ordered_json& fields);

 private:
  std::ostream& out_;
};

// All events of a log, each with its key "event". A last line without an end was cut off by a
// crash and is left out; any other line that is not an event is an error that names its number.
Result<std::vector<nlohmann::ordered_json>> read_events(std::istream& in);

}  // namespace longhaul
