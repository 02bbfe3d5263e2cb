#include "longhaul/lab/study.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "longhaul/base/text.h"
#include "longhaul/job/job.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kMostPoints = 10'000;

Error wrong_use(const std::string& what) { return Error{ErrorCode::kInvalidArgument, what}; }

// All combinations of the axes, the last one running fastest.
std::vector<std::vector<std::string>> combinations(
    const std::vector<std::vector<std::string>>& grid) {
  std::vector<std::vector<std::string>> all{{}};
  for (const std::vector<std::string>& axis : grid) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& start : all) {
      for (const std::string& setting : axis) {
        longer.push_back(start);
        longer.back().push_back(setting);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Result<std::vector<std::string>> recipes_of(const StudyOptions& request, const Scenario& scenario) {
  std::vector<std::string> texts = request.recipes.empty() ? scenario.recipes : request.recipes;
  if (texts.empty()) texts = {"auto"};
  for (auto text = texts.begin(); text != texts.end(); ++text) {
    (void)LONGHAUL_TRY(make_job(scenario, *text, scenario.train.seed));
    if (std::find(texts.begin(), text, *text) != text)
      return wrong_use("--recipe: expected each recipe once, got " + *text + " twice");
  }
  return texts;
}

}  // namespace

Result<std::vector<Scenario>> study_points(const StudyOptions& request) {
  std::size_t count = 1;
  for (const std::vector<std::string>& axis : request.grid) {
    count *= axis.size();
    if (count > kMostPoints)
      return wrong_use("--grid: expected at most " + std::to_string(kMostPoints) +
                       " combinations, got more");
  }
  std::vector<Scenario> points;
  for (const std::vector<std::string>& chosen : combinations(request.grid)) {
    std::vector<std::string> settings = request.settings;
    settings.insert(settings.end(), chosen.begin(), chosen.end());
    Scenario scenario = LONGHAUL_TRY(load_scenario(request.scenario, request.catalogue, settings));
    scenario.recipes = LONGHAUL_TRY(recipes_of(request, scenario));
    for (const std::string& setting : chosen)
      scenario.search += (scenario.search.empty() ? "" : " ") + setting;
    std::vector<std::uint64_t> seeds = request.seeds;
    if (seeds.empty()) seeds = {scenario.train.seed};
    for (const std::uint64_t seed : seeds) {
      scenario.train.seed = seed;
      points.push_back(scenario);
    }
  }
  return points;
}

Result<std::vector<std::string>> parse_grid_axis(std::string_view text) {
  const std::string key(text.substr(0, text.find('=')));
  std::vector<std::string> values;
  if (check_settings({std::string(text)}).ok()) values = split_list(text.substr(key.size() + 1));
  if (values.empty()) return wrong_use("expected table.key=value,value, got " + std::string(text));
  std::vector<std::string> settings;
  for (const std::string& value : values) {
    settings.push_back(std::string(key).append("=").append(value));
    if (std::ranges::count(settings, settings.back()) > 1)
      return wrong_use(std::string(key).append(": expected each value once, got ") + value +
                       " twice");
  }
  return settings;
}

Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text) {
  std::vector<std::uint64_t> seeds;
  for (const std::string& part : split_list(text)) {
    std::uint64_t seed = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), seed);
    if (failure != std::errc{} || end != part.data() + part.size())
      return wrong_use("expected whole numbers such as 1,2,3, got " + std::string(text));
    if (std::ranges::find(seeds, seed) != seeds.end())
      return wrong_use("expected each seed once, got " + part + " twice");
    seeds.push_back(seed);
  }
  if (seeds.empty()) return wrong_use("expected whole numbers such as 1,2,3, got none");
  return seeds;
}

}  // namespace longhaul::lab
