// The one table of scenario keys. Parsing, error messages and the check of docs/scenario.md are
// driven by it: a new key is a new row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/job/scenario.h"

namespace longhaul {

// A value as it was written.
struct RawValue {
  enum class Kind : std::uint8_t {
    kBare,  // after --set: fits every type that its text fits
    kText,
    kInteger,
    kReal,
    kList,   // of texts, in `items`
    kOther,  // a type that no key wants
  };
  Kind kind = Kind::kBare;
  std::string text;
  std::vector<std::string> items;
};

// A scenario that is being read; rows write to it. `replica`, `replica_count`, `layer` and `recipe`
// belong to the [[replica]], [[layer]] or [recipe.NAME] that is being read.
struct Draft {
  Scenario scenario;
  LinkOptions link;
  ReplicaOptions replica;
  std::size_t replica_count = 1;
  LayerProfile::Layer layer;
  RecipeOptions recipe;
};

// One key of a scenario: its place, its values, its meaning.
struct ScenarioKey {
  std::string table;  // empty: top level; "recipe" stands for every [recipe.NAME]
  std::string name;
  std::string fallback;  // the default as docs/scenario.md prints it
  std::string expected;  // type, unit and range, for errors and docs/scenario.md
  bool is_path = false;  // a relative one in a file is relative to the file
  // False where the value is not what is expected.
  std::function<bool(Draft&, const RawValue&)> set;
  // The value as a file would have it, exactly; empty where none is set.
  std::function<std::string(Draft&)> show;

  [[nodiscard]] std::string full_name() const { return table.empty() ? name : table + '.' + name; }
};

std::vector<ScenarioKey> scenario_keys(const Catalogue& catalogue);

}  // namespace longhaul
