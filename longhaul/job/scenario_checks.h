// Checks of a scenario beyond single values: how keys fit together, and which key was meant by an
// unknown name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario_keys.h"

namespace longhaul {

// Where each key was set, by full name: "fashion-wan.toml:12". A key that was not set is absent.
using Places = std::map<std::string, std::string>;

Status check_scenario(const Scenario& scenario, const std::string& file_name, const Places& places,
                      const Catalogue& catalogue);

// "train.learning_rate: unknown key; did you mean train.lr?"
std::string unknown_key(const std::string& full_name, const std::string& table,
                        const std::string& name, const std::vector<ScenarioKey>& keys);

}  // namespace longhaul
