// Events for programs: one JSON object per line on standard output, at once.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace longhaul::apps {

inline std::string event_line(const std::string& name, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json event{{"event", name}};
  event.update(fields);
  return event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

inline void print_event(const std::string& name, const nlohmann::ordered_json& fields) {
  std::cout << event_line(name, fields) << '\n' << std::flush;
}

}  // namespace longhaul::apps
