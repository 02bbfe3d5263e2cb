// The runs of one call of `lab`: recipes × settings of a search × seeds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/run.h"

namespace longhaul::lab {

// One axis of a search: "train.lr=0.02,0.05".
struct GridAxis {
  std::string key;
  std::vector<std::string> values;
};

struct StudyOptions {
  std::string scenario;  // name or path
  Catalogue catalogue;
  std::vector<std::string> recipes;  // empty: the scenario's
  std::vector<std::uint64_t> seeds;  // empty: the scenario's
  std::vector<Setting> settings;
  std::vector<GridAxis> grid;
};

// All runs of a point share one workload.
struct StudyPoint {
  Scenario scenario;     // with its settings applied and train.seed set to `seed`
  std::string settings;  // of the search: "train.lr=0.05"; empty without one
  std::uint64_t seed = 1;
  std::vector<RecipeChoice> recipes;
};

// Every combination, checked before the first run starts. At least one point.
Result<std::vector<StudyPoint>> study_points(const StudyOptions& request);

// As people write them on the command line.
Result<GridAxis> parse_grid_axis(std::string_view text);                // table.key=value,value
Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text);  // 1,2,3

}  // namespace longhaul::lab
