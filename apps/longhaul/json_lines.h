// Events for programs: one JSON object per line on standard output, at once.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace longhaul::apps {

inline void print_event(const std::string& name, nlohmann::ordered_json fields) {
  nlohmann::ordered_json event{{"event", name}};
  event.update(fields);
  std::cout << event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n'
            << std::flush;
}

}  // namespace longhaul::apps
