#include "longhaul/hub/journal_names.h"

#include <algorithm>
#include <optional>
#include <system_error>

namespace longhaul {
namespace {

std::string numbered(const char* kind, std::uint64_t step, const char* ending) {
  const std::string digits = std::to_string(step);
  return std::string(kind) + '-' + std::string(digits.size() < 12 ? 12 - digits.size() : 0, '0') +
         digits + ending;
}
// The number that numbered() made the name of, if it did.
std::optional<std::uint64_t> step_of(const std::string& name, const std::string& kind,
                                     const std::string& ending) {
  if (!name.starts_with(kind + '-') || !name.ends_with(ending)) return std::nullopt;
  const std::size_t first = kind.size() + 1;
  if (name.size() <= first + ending.size()) return std::nullopt;
  const std::string digits = name.substr(first, name.size() - first - ending.size());
  if (digits.size() > 19 ||
      !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoull(digits);
}

std::vector<std::uint64_t> steps_in(const std::filesystem::path& directory, const char* kind,
                                    const char* ending) {
  std::vector<std::uint64_t> steps;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failure)) {
    if (const auto step = step_of(entry.path().filename().string(), kind, ending))
      steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}
}  // namespace

std::string snapshot_name(std::uint64_t step) { return numbered("snapshot", step, ".safetensors"); }
std::string log_name(std::uint64_t step) { return numbered("rounds", step, ".log"); }

std::vector<std::uint64_t> snapshots_in(const std::filesystem::path& directory) {
  return steps_in(directory, "snapshot", ".safetensors");
}
std::vector<std::uint64_t> logs_in(const std::filesystem::path& directory) {
  return steps_in(directory, "rounds", ".log");
}

}  // namespace longhaul
