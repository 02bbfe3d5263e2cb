// A scenario: what is trained on what, by whom, over which links, towards which target.
// docs/scenario.md lists every key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/layer_profile.h"
#include "longhaul/sync/lr_schedule.h"
#include "longhaul/sync/optimizer.h"
#include "longhaul/sync/target.h"

namespace longhaul {

// The built-in scenarios, and the models and data sets that a scenario may name. The trainer fills
// in those that it has; without any, every name is accepted.
struct Catalogue {
  std::string scenarios;  // their directory
  std::vector<std::string> image_models;
  std::vector<std::string> text_models;
  std::vector<std::string> image_data;
  std::vector<std::string> text_data;
};

// The table [model] of a scenario.
struct ModelOptions {
  std::string name = "cnn";
  // Sizes that a model asks for; 0: the model's own.
  std::size_t layers = 0;
  std::size_t width = 0;
  std::size_t heads = 0;
  std::size_t context = 0;
};

// The table [data] of a scenario.
struct DataOptions {
  std::string kind = "fashion-mnist";
  std::string path;           // empty: where the package puts it
  std::string split = "iid";  // iid, shards, dirichlet
  double dirichlet = 0.5;     // β of split = "dirichlet": smaller is more unequal
};

// The end of a run.
enum class StopAt : std::uint8_t { kSteps, kTarget };

// The table [train] of a scenario.
struct TrainOptions {
  std::size_t batch = 32;  // per replica
  double lr = 0.05;
  LrShape schedule = LrShape::kConstant;
  std::size_t warmup_steps = 0;
  OptimizerKind optimizer = OptimizerKind::kMomentum;
  double momentum = 0.9;
  double weight_decay = 0;
  double clip = 0;  // largest norm of a replica's gradient; 0: none
  std::size_t steps = 400;
  std::uint64_t seed = 1;
  Seconds step_time{0.06};     // of work for a step
  std::optional<StopAt> stop;  // none: the command chooses
  // In the last step replicas send all that they held back, uncompressed.
  bool final_average = false;
};

// The table [eval] of a scenario.
struct EvalOptions {
  std::size_t every = 10;
  std::size_t samples = 2000;
};

// The table [link] of a scenario.
// The Markov model of rates, where a link names no trace file: `markov_spread` above 0 turns it on.
struct LinkOptions {
  Bandwidth up = Bandwidth::from_bits_per_second(1e9);
  Bandwidth down = Bandwidth::from_bits_per_second(1e9);
  Seconds latency{0};  // one way
  std::string
      trace;  // CSV or Mahimahi file, scaled to `up` and `down` as its means; empty: constant
  double markov_spread = 0;  // below 1: rates lie within mean·(1 ± spread)
  Seconds markov_dwell{10};  // mean time until the rate changes
};

// One replica of a scenario, from a table [[replica]].
struct ReplicaOptions {
  LinkOptions link;  // the scenario's, with this replica's own keys put over it
  Seconds step_time{0.06};
  double weight = 1;
};

// Keys of [recipe.NAME], which win over the row of the recipe and lose against the command line.
struct RecipeOptions {
  std::optional<double> keep_ratio;
  std::optional<int> delay_steps;
  std::optional<int> period_steps;
  std::optional<std::string> codec;  // "top_k/bf16"
  std::optional<std::string> merge;  // "late"
  std::optional<double> lr;          // in place of train.lr
  std::optional<double> outer_lr;
  std::optional<double> residual_decay;
};

// A scenario file as it was read and checked.
struct Scenario {
  std::string name;
  std::string title;
  ModelOptions model;
  DataOptions data;
  TrainOptions train;
  EvalOptions eval;
  TargetOptions target;
  std::vector<ReplicaOptions> replicas;
  // Tables [[layer]]: the shares that layers have of a step's time, in backward order. A name is
  // the part of its tensors' names before the last dot. Without tables layers take times by their
  // sizes.
  LayerProfile times;
  std::vector<std::string> recipes;  // what `lab` runs when no recipe is named; may be empty
  std::map<std::string, RecipeOptions> overrides;  // by recipe
  std::string search;  // settings that a search put over the file: "train.lr=0.05"; empty: none
};

// Settings are "table.key=value", as in --set. An error where one of them is not.
Status check_settings(const std::vector<std::string>& settings);

// Errors name file, line, key and what was expected: `fashion-wan.toml:12: link.up: expected …, got
// …`. Settings are applied as if they stood in the file.
Result<Scenario> parse_scenario(std::string_view text, const std::string& file_name,
                                const std::vector<std::string>& settings,
                                const Catalogue& catalogue);

// A path, or the name of a built-in scenario.
std::filesystem::path scenario_path(const std::string& name_or_path, const Catalogue& catalogue);
Result<Scenario> load_scenario(const std::string& name_or_path, const Catalogue& catalogue,
                               const std::vector<std::string>& settings);

// Names in alphabetical order.
std::vector<std::string> built_in_scenarios(const Catalogue& catalogue);

}  // namespace longhaul
