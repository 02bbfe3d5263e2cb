// The options of those who only look at a hub: `status` and `probe`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "longhaul/session/hub_access.h"

namespace longhaul::apps {

struct VisitCommandOptions {
  std::string invite;
  std::string hub;
  bool json = false;
  // Only `status` has these.
  bool is_watching = false;
  std::string interval = "2s";
  // Only `probe` has these.
  std::string params;
  std::string step_time;
};

// Adds those that both have.
void add_visit_options(CLI::App& command, VisitCommandOptions& arguments);
// Where to dial; a hub without keys is told that it is `name`.
Result<HubAccess> visit_access(const VisitCommandOptions& arguments, const std::string& name);

}  // namespace longhaul::apps
