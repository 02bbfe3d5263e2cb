#include "longhaul/telemetry/event_log.h"

#include <nlohmann/json.hpp>
#include <string>

#include "longhaul/base/check.h"

namespace longhaul {

using Json = nlohmann::ordered_json;

void EventLog::write(std::string_view event, const Json& fields) {
  LONGHAUL_CHECK(fields.is_object() && !fields.contains("event"));
  Json line{{"event", event}};
  line.update(fields);
  // What is not UTF-8 (a path, say) is replaced: a log never fails over a name.
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
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
