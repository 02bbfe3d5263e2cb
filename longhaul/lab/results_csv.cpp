// Results as a table for spreadsheets and data frames.
#include <nlohmann/json.hpp>

#include "longhaul/lab/results_json.h"

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string csv_field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string results_csv(const Scenario& scenario, const std::vector<RunResult>& runs) {
  const Json results = results_json(scenario, runs);
  // An empty run, whose row only gives the columns.
  const Json columns = results_json(scenario, {RunResult{}}).at("runs").at(0);
  std::string csv = "scenario,clock";
  for (const auto& [key, value] : columns.items()) {
    if (!value.is_array()) csv += ',' + key;
  }
  csv += '\n';
  for (const Json& run : results.at("runs")) {
    csv += csv_field(results.at("scenario")) + ',' + csv_field(results.at("clock"));
    for (const auto& [key, value] : columns.items()) {
      if (!value.is_array()) csv += ',' + csv_field(run.at(key));
    }
    csv += '\n';
  }
  return csv;
}

}  // namespace longhaul::lab
