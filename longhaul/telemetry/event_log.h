// Events as JSON lines: one object per line, whose first key "event" names it. Every event of every
// program is made here; docs/events.md lists them all.
#pragma once

#include <chrono>
#include <istream>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul {

using WallClockTime = std::chrono::system_clock::time_point;

// RFC 3339, UTC with milliseconds: 2026-11-18T00:31:02.123Z.
std::string rfc3339(WallClockTime time);

// One event, without the end of its line. With a time, the second key is "time". Text that is not
// UTF-8 is replaced. Precondition: `fields` is an object without the keys "event" and "time".
std::string event_line(std::string_view event, const nlohmann::ordered_json& fields,
                       std::optional<WallClockTime> time = std::chrono::system_clock::now());

// Writes an event that happens now to standard output, in one piece and at once.
void print_event(std::string_view event, const nlohmann::ordered_json& fields);

// Writes an event without "time" to a log: two runs on a virtual clock write the same bytes. The
// event is flushed, so that a run that is killed leaves what it did. Preconditions as for
// event_line().
void write_event(std::ostream& out, std::string_view event, const nlohmann::ordered_json& fields);

// All events of a log, each with its key "event". A last line without an end was cut off by a crash
// and is left out. Any other line that is not an event is an error that names its number.
Result<std::vector<nlohmann::ordered_json>> read_events(std::istream& in);

}  // namespace longhaul
