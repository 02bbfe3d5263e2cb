#include "longhaul/access/wall_time.h"

#include <array>
#include <ctime>

namespace longhaul::access {

WallTime wall_now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string to_text(WallTime time) {
  const auto seconds = static_cast<std::time_t>(time.time_since_epoch().count());
  std::tm parts{};
  if (::gmtime_r(&seconds, &parts) == nullptr) return "beyond the calendar";
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Result<WallTime> parse_wall_time(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* end = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end != nullptr) {
    const WallTime time{std::chrono::seconds(::timegm(&parts))};
    if (to_text(time) == text) return time;
  }
  return Error{ErrorCode::kInvalidArgument,
               "expected a time such as 2027-01-31T12:00:00Z, got " + copy.substr(0, 40)};
}

}  // namespace longhaul::access
