#include "trainer/model_table.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace longhaul::trainer {
namespace {

template <typename Rows>
std::string names_of(const Rows& rows) {
  std::string names;
  for (const auto& row : rows) (names += names.empty() ? "" : ", ") += row.name;
  return names.empty() ? "none" : names;
}

Error wrong(const std::string& message) {
  return {ErrorCode::kInvalidArgument, "model " + message};
}

Status set_option(const ModelEntry& entry, const std::string& name, double value,
                  ModelKnobs& options) {
  const std::string what = std::string(entry.name) + ": ";
  const auto option = std::ranges::find(entry.options, name, &ModelOption::name);
  if (option == entry.options.end()) {
    return wrong(what + "no option \"" + name + "\"; it has: " + names_of(entry.options));
  }
  const bool is_in_range = value >= option->least && value <= option->most;
  if (!is_in_range || (option->is_whole && std::floor(value) != value)) {
    std::ostringstream text;
    text << what << name << " is a " << (option->is_whole ? "whole number" : "number") << " from "
         << option->least << " to " << option->most << ", got " << value;
    return wrong(text.str());
  }
  options[name] = value;
  return Done{};
}

// `width` is shared out evenly over heads or groups.
Status check_division(const ModelEntry& entry, const ModelKnobs& options) {
  for (const char* part : {"heads", "groups"}) {
    if (!options.contains(part) || std::fmod(options.at("width"), options.at(part)) == 0) continue;
    return wrong(std::string(entry.name) + ": " + part + " does not divide width");
  }
  return Done{};
}

}  // namespace

Result<const ModelEntry*> find_model(const std::string& name) {
  const auto table = model_table();
  const auto entry = std::ranges::find(table, name, &ModelEntry::name);
  if (entry != table.end()) return &*entry;
  return wrong("\"" + name + "\" is unknown; expected one of " + names_of(table));
}

Result<ModelKnobs> complete_knobs(const ModelEntry& entry, const ModelKnobs& given) {
  ModelKnobs knobs;
  for (const ModelOption& option : entry.options) knobs.emplace(option.name, option.default_value);
  for (const auto& [name, value] : given) {
    LONGHAUL_TRY(set_option(entry, name, value, knobs));
  }
  LONGHAUL_TRY(check_division(entry, knobs));
  return knobs;
}

}  // namespace longhaul::trainer
