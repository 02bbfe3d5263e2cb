#include "longhaul/telemetry/event_log.h"

#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "longhaul/base/check.h"

namespace longhaul {

using Json = nlohmann::ordered_json;

std::string rfc3339(WallClockTime time) {
  namespace chrono = std::chrono;
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(chrono::floor<chrono::milliseconds>(time - day));
  std::array<char, 64> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string event_line(std::string_view event, const Json& fields,
                       std::optional<WallClockTime> time) {
  LONGHAUL_CHECK(fields.is_object() && !fields.contains("event") && !fields.contains("time"));
  Json line{{"event", event}};
  if (time) line["time"] = rfc3339(*time);
  line.update(fields);
  // Bytes that are not UTF-8 (in a path, say) are replaced: a log never fails over a name.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void print_event(std::string_view event, const Json& fields) {
  // One string: other threads may print too.
  std::cout << event_line(event, fields) + '\n' << std::flush;
}

void write_event(std::ostream& out, std::string_view event, const Json& fields) {
  out << event_line(event, fields, std::nullopt) << '\n' << std::flush;
}

Result<std::vector<Json>> read_events(std::istream& in) {
  std::vector<Json> events;
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in.eof()) break;
    Json event = Json::parse(line, nullptr, false);
    const bool is_event =
        event.is_object() && event.contains("event") && event["event"].is_string();
    if (!is_event)
      return Error{
          ErrorCode::kInvalidArgument,
          "line " + std::to_string(number) + ": expected an event, got " + line.substr(0, 60)};
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace longhaul
