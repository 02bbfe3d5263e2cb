// Calendar time, in which certificates begin and end: whole seconds, UTC, 2027-01-31T12:00:00Z.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul::access {

using WallTime = std::chrono::sys_seconds;

WallTime wall_now();

std::string to_text(WallTime time);
// Reads what to_text writes and nothing else.
Result<WallTime> parse_wall_time(std::string_view text);

}  // namespace longhaul::access
