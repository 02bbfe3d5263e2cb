// Finds scenarios: built-in ones by name, others by path.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "longhaul/base/file.h"
#include "longhaul/base/text.h"
#include "longhaul/job/scenario.h"

namespace longhaul {
namespace {

std::vector<std::string> scenarios_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// Suggests a file or a built-in scenario in place of a file that does not exist.
std::string meant_instead(const std::filesystem::path& path, const std::string& built_in) {
  std::error_code unreadable;
  const std::filesystem::path with_ending = path.string() + ".toml";
  if (std::filesystem::is_regular_file(with_ending, unreadable))
    return "; did you mean " + with_ending.string() + '?';
  const std::filesystem::path directory = path.parent_path();
  const std::string near = nearest_name(path.stem().string(),
                                        scenarios_in(directory.empty() ? "." : directory.string()));
  if (!near.empty() && near != path.stem())
    return "; did you mean " + (directory / (near + ".toml")).string() + '?';
  return did_you_mean(path.stem().string(), scenarios_in(built_in));
}

Error no_such_scenario(const std::string& name, const std::string& built_in) {
  const std::vector<std::string> names = scenarios_in(built_in);
  std::string meant = did_you_mean(name, names);
  std::error_code unreadable;
  if (std::filesystem::is_regular_file(name + ".toml", unreadable))
    meant = "; did you mean the file " + name + ".toml?";
  return Error{ErrorCode::kNotFound,
               name + ": no built-in scenario has this name" + meant + " (" +
                   (names.empty() ? "none found in " + built_in : joined(names)) +
                   "); a file of your own ends in .toml"};
}

}  // namespace

std::filesystem::path scenario_path(const std::string& name_or_path, const Catalogue& catalogue) {
  const bool is_path =
      name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml");
  if (is_path) return name_or_path;
  return std::filesystem::path(catalogue.scenarios) / (name_or_path + ".toml");
}

Result<Scenario> load_scenario(const std::string& name_or_path, const Catalogue& catalogue,
                               const std::vector<std::string>& settings) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 24U;
  const std::filesystem::path path = scenario_path(name_or_path, catalogue);
  std::error_code unreadable;
  if (path != name_or_path && !std::filesystem::exists(path, unreadable))
    return no_such_scenario(name_or_path, catalogue.scenarios);
  Result<ByteBuffer> bytes = read_file(path, kMostBytes);
  if (!bytes.ok()) {
    Error error = std::move(bytes).error();
    if (error.code == ErrorCode::kNotFound)
      error.message += meant_instead(path, catalogue.scenarios);
    return error;
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return parse_scenario(text, path.string(), settings, catalogue);
}

std::vector<std::string> built_in_scenarios(const Catalogue& catalogue) {
  return scenarios_in(catalogue.scenarios);
}

}  // namespace longhaul
