// The runs of one call of `lab`: recipes × settings of a search × seeds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"

namespace longhaul::lab {

struct StudyOptions {
  std::string scenario;  // name or path
  Catalogue catalogue;
  std::vector<std::string> recipes;            // empty: the scenario's
  std::vector<std::uint64_t> seeds;            // empty: the scenario's
  std::vector<std::string> settings;           // "table.key=value"
  std::vector<std::vector<std::string>> grid;  // the settings of each axis of a search
};

// Every combination, checked before the first run starts: the scenario with its settings, one seed
// and the recipes to run. At least one. All runs of one of them share a workload.
Result<std::vector<Scenario>> study_points(const StudyOptions& request);

// As people write them on the command line.
Result<std::vector<std::string>> parse_grid_axis(std::string_view text);  // table.key=value,value
Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);    // 1,2,3

}  // namespace longhaul::lab
