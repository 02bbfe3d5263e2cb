#include "longhaul/job/scenario.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "longhaul/job/scenario_checks.h"
#include "longhaul/job/scenario_keys.h"

namespace longhaul {
namespace {

using Kind = RawValue::Kind;

// One `key = value`, from the file or from --set.
struct Assignment {
  const ScenarioKey* key;
  std::string recipe;  // NAME of [recipe.NAME]
  std::string full_name;
  RawValue value;
  std::string where;  // "fashion-wan.toml:12" or "--set link.up=0mbit"
};

RawValue raw_value(const toml::node& node) {
  if (const auto* text = node.as_string()) return {.kind = Kind::kText, .text = text->get()};
  RawValue value{.kind = Kind::kOther};
  if (const auto* list = node.as_array()) {
    const auto is_text = [](const toml::node& item) { return item.is_string(); };
    value.text = "a list";
    if (!std::all_of(list->begin(), list->end(), is_text)) return value;
    value.kind = Kind::kList;
    for (const toml::node& item : *list) value.items.push_back(item.as_string()->get());
    return value;
  }
  if (node.is_table()) return {.kind = Kind::kOther, .text = "a table"};
  if (node.is_integer()) value.kind = Kind::kInteger;
  if (node.is_floating_point()) value.kind = Kind::kReal;
  std::ostringstream written;
  node.visit([&written](const auto& scalar) {
    if constexpr (toml::is_value<decltype(scalar)>) written << scalar;
  });
  value.text = written.str();
  return value;
}

std::string as_got(const RawValue& value) {
  return value.kind == Kind::kText ? '"' + value.text + '"' : value.text;
}

// Reads text into assignments, then assignments into a scenario.
class Parser {
 public:
  Parser(const std::string& file_name, const Catalogue& catalogue)
      : file_name_(file_name),
        directory_(std::filesystem::path(file_name).parent_path()),
        catalogue_(catalogue) {}

  Status read_file(std::string_view text);
  Status read_setting(const std::string& setting);
  Result<Scenario> finish();

 private:
  Status read_table(const toml::table& table, const std::string& name, const std::string& recipe,
                    std::vector<Assignment>& out);
  Status read_list(const std::string& name, const toml::node& node,
                   std::vector<std::vector<Assignment>>& out);
  Status read_recipes(const toml::node& node);
  Status read_top_level(std::string_view name, const toml::node& node);
  Status apply(const std::vector<Assignment>& assignments);
  Status add_replicas();
  Status add_layers();

  [[nodiscard]] const ScenarioKey* find(const std::string& table, std::string_view name) const;
  [[nodiscard]] std::string place(const toml::source_region& region) const {
    return file_name_ + ':' + std::to_string(region.begin.line);
  }
  [[nodiscard]] bool is_table(std::string_view name) const {
    return std::ranges::any_of(keys_, [&](const ScenarioKey& key) { return key.table == name; });
  }

  const std::string file_name_;
  const std::filesystem::path directory_;
  const Catalogue& catalogue_;
  const std::vector<ScenarioKey> keys_ = scenario_keys(catalogue_);
  std::vector<Assignment> plain_;                  // later ones win
  std::vector<std::vector<Assignment>> replicas_;  // one list for each [[replica]]
  std::vector<Assignment> every_replica_;          // --set replica.key=value
  std::vector<std::vector<Assignment>> layers_;    // one list for each [[layer]]
  Draft draft_;
  Places places_;
};

Error invalid(const std::string& where, const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, where + ": " + what};
}

const ScenarioKey* Parser::find(const std::string& table, std::string_view name) const {
  const auto found = std::ranges::find_if(
      keys_, [&](const ScenarioKey& key) { return key.table == table && key.name == name; });
  return found == keys_.end() ? nullptr : &*found;
}

Status Parser::read_table(const toml::table& table, const std::string& name,
                          const std::string& recipe, std::vector<Assignment>& out) {
  for (const auto& [toml_key, node] : table) {
    std::string full_name = name;
    if (!recipe.empty()) full_name.append(".").append(recipe);
    full_name.append(".").append(toml_key.str());
    const ScenarioKey* key = find(name, toml_key.str());
    const std::string where = place(toml_key.source());
    if (key == nullptr)
      return invalid(where, unknown_key(full_name, name, std::string(toml_key.str()), keys_));
    Assignment assignment{key, recipe, full_name, raw_value(node), where};
    std::string& text = assignment.value.text;
    if (key->is_path && !text.empty()) text = (directory_ / text).string();
    out.push_back(std::move(assignment));
  }
  return Done{};
}

// Tables [[name]].
Status Parser::read_list(const std::string& name, const toml::node& node,
                         std::vector<std::vector<Assignment>>& out) {
  const toml::array* list = node.as_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const toml::table* table = (*list)[i].as_table();
    if (table == nullptr) list = nullptr;
    if (list == nullptr) break;
    LONGHAUL_TRY(read_table(*table, name, "", out.emplace_back()));
  }
  if (list != nullptr) return Done{};
  return invalid(place(node.source()),
                 name + ": expected tables [[" + name + "]], got " + as_got(raw_value(node)));
}

Status Parser::read_recipes(const toml::node& node) {
  const toml::table* recipes = node.as_table();
  if (recipes == nullptr)
    return invalid(place(node.source()),
                   "recipe: expected tables [recipe.NAME], got " + as_got(raw_value(node)));
  for (const auto& [name, settings] : *recipes) {
    const std::string recipe(name.str());
    if (!settings.is_table())
      return invalid(place(name.source()), "recipe." + recipe +
                                               ": expected a table [recipe.NAME], got " +
                                               as_got(raw_value(settings)));
    draft_.scenario.overrides[recipe];
    LONGHAUL_TRY(read_table(*settings.as_table(), "recipe", recipe, plain_));
  }
  return Done{};
}

Status Parser::read_top_level(std::string_view name, const toml::node& node) {
  if (name == "replica") return read_list("replica", node, replicas_);
  if (name == "layer") return read_list("layer", node, layers_);
  if (name == "recipe") return read_recipes(node);
  const std::string table(name);
  if (is_table(name)) {
    if (node.is_table()) return read_table(*node.as_table(), table, "", plain_);
    return invalid(place(node.source()),
                   table + ": expected a table [" + table + "], got " + as_got(raw_value(node)));
  }
  const ScenarioKey* key = find("", name);
  if (key == nullptr) return invalid(place(node.source()), unknown_key(table, "", table, keys_));
  plain_.push_back({key, "", table, raw_value(node), place(node.source())});
  return Done{};
}

Status Parser::read_file(std::string_view text) {
  draft_.scenario.name = std::filesystem::path(file_name_).stem().string();
  try {
    const toml::table file = toml::parse(text, file_name_);
    for (const auto& [name, node] : file) {
      LONGHAUL_TRY(read_top_level(name.str(), node));
    }
  } catch (const toml::parse_error& error) {
    return invalid(place(error.source()), std::string(error.description()));
  }
  return Done{};
}

Status Parser::read_setting(const std::string& setting) {
  const std::string where = "--set " + setting;
  const std::size_t equals = setting.find('=');
  const std::string full_name = setting.substr(0, equals);
  const std::size_t dot = full_name.rfind('.');
  std::string table = dot == std::string::npos ? "" : full_name.substr(0, dot);
  const std::string name = dot == std::string::npos ? full_name : full_name.substr(dot + 1);
  std::string recipe;
  if (table.starts_with("recipe.")) {
    recipe = table.substr(7);
    table = "recipe";
  }
  const ScenarioKey* key = find(table, name);
  if (key == nullptr || (table == "recipe") == recipe.empty())
    return invalid(where, unknown_key(full_name, table, name, keys_));
  if (table == "layer")
    return invalid(where, full_name + ": tables [[layer]] stand in a file only");
  Assignment assignment{key, recipe, full_name, {.text = setting.substr(equals + 1)}, where};
  if (table == "recipe") draft_.scenario.overrides[recipe];
  // A learning rate given on the command line also wins over those of [recipe.NAME].
  if (full_name == "train.lr")
    std::erase_if(plain_, [](const Assignment& old) {
      return old.key->table == "recipe" && old.key->name == "lr" &&
             !old.where.starts_with("--set ");
    });
  (table == "replica" ? every_replica_ : plain_).push_back(std::move(assignment));
  return Done{};
}

Status Parser::apply(const std::vector<Assignment>& assignments) {
  for (const Assignment& assignment : assignments) {
    if (!assignment.recipe.empty()) draft_.recipe = draft_.scenario.overrides[assignment.recipe];
    if (!assignment.key->set(draft_, assignment.value))
      return invalid(assignment.where, assignment.full_name + ": expected " +
                                           assignment.key->expected + ", got " +
                                           as_got(assignment.value));
    if (!assignment.recipe.empty()) draft_.scenario.overrides[assignment.recipe] = draft_.recipe;
    places_[assignment.full_name] = assignment.where;
  }
  return Done{};
}

Status Parser::add_replicas() {
  for (const std::vector<Assignment>& own : replicas_) {
    draft_.replica = {.link = draft_.link, .step_time = draft_.scenario.train.step_time};
    draft_.replica_count = 1;
    LONGHAUL_TRY(apply(own));
    LONGHAUL_TRY(apply(every_replica_));
    std::vector<ReplicaOptions>& all = draft_.scenario.replicas;
    all.insert(all.end(), draft_.replica_count, draft_.replica);
  }
  return Done{};
}

Status Parser::add_layers() {
  for (const std::vector<Assignment>& own : layers_) {
    draft_.layer = {};
    LONGHAUL_TRY(apply(own));
    draft_.scenario.times.layers.push_back(draft_.layer);
  }
  return Done{};
}

Result<Scenario> Parser::finish() {
  LONGHAUL_TRY(apply(plain_));
  LONGHAUL_TRY(add_replicas());
  LONGHAUL_TRY(add_layers());
  LONGHAUL_TRY(check_scenario(draft_.scenario, file_name_, places_, catalogue_));
  return std::move(draft_.scenario);
}

}  // namespace

Status check_settings(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorCode::kInvalidArgument, "expected table.key=value, got " + setting};
  }
  return Done{};
}

Result<Scenario> parse_scenario(std::string_view text, const std::string& file_name,
                                const std::vector<std::string>& settings,
                                const Catalogue& catalogue) {
  Parser parser(file_name, catalogue);
  LONGHAUL_TRY(parser.read_file(text));
  LONGHAUL_TRY(check_settings(settings));
  for (const std::string& setting : settings) {
    LONGHAUL_TRY(parser.read_setting(setting));
  }
  return parser.finish();
}

}  // namespace longhaul
