#include "longhaul/lab/study.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "longhaul/base/text.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kMostPoints = 10'000;

Error wrong_use(const std::string& what) { return Error{ErrorCode::kInvalidArgument, what}; }

// All combinations of the axes, the last one running fastest.
std::vector<std::vector<Setting>> combinations(const std::vector<GridAxis>& grid) {
  std::vector<std::vector<Setting>> all{{}};
  for (const GridAxis& axis : grid) {
    std::vector<std::vector<Setting>> longer;
    for (const std::vector<Setting>& start : all) {
      for (const std::string& value : axis.values) {
        longer.push_back(start);
        longer.back().push_back({.key = axis.key, .value = value});
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::string text_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings)
    text += (text.empty() ? "" : " ") + setting.key + '=' + setting.value;
  return text;
}

Result<std::vector<RecipeChoice>> choices_of(const StudyOptions& request,
                                             const Scenario& scenario) {
  std::vector<std::string> texts = request.recipes.empty() ? scenario.recipes : request.recipes;
  if (texts.empty()) texts = {"auto"};
  std::vector<RecipeChoice> choices;
  for (const std::string& text : texts) {
    RecipeChoice choice = LONGHAUL_TRY(parse_recipe_choice(text));
    (void)LONGHAUL_TRY(chosen_recipe(scenario, choice));
    if (std::ranges::find(choices, text, &RecipeChoice::text) != choices.end())
      return wrong_use("--recipe: expected each recipe once, got " + text + " twice");
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace

Result<std::vector<StudyPoint>> study_points(const StudyOptions& request) {
  std::size_t count = 1;
  for (const GridAxis& axis : request.grid) {
    count *= axis.values.size();
    if (count > kMostPoints)
      return wrong_use("--grid: expected at most " + std::to_string(kMostPoints) +
                       " combinations, got more");
  }
  std::vector<StudyPoint> points;
  for (const std::vector<Setting>& chosen : combinations(request.grid)) {
    std::vector<Setting> settings = request.settings;
    settings.insert(settings.end(), chosen.begin(), chosen.end());
    Scenario scenario = LONGHAUL_TRY(load_scenario(request.scenario, request.catalogue, settings));
    std::vector<RecipeChoice> recipes = LONGHAUL_TRY(choices_of(request, scenario));
    std::vector<std::uint64_t> seeds = request.seeds;
    if (seeds.empty()) seeds = {scenario.train.seed};
    for (const std::uint64_t seed : seeds) {
      points.push_back({scenario, text_of(chosen), seed, recipes});
      points.back().scenario.train.seed = seed;
    }
  }
  return points;
}

Result<GridAxis> parse_grid_axis(std::string_view text) {
  const Result<Setting> setting = parse_setting(text);
  GridAxis axis;
  if (setting.ok()) axis = {.key = setting->key, .values = split_list(setting->value)};
  if (axis.values.empty())
    return wrong_use("expected table.key=value,value, got " + std::string(text));
  for (auto value = axis.values.begin(); value != axis.values.end(); ++value) {
    if (std::find(axis.values.begin(), value, *value) != value)
      return wrong_use(axis.key + ": expected each value once, got " + *value + " twice");
  }
  return axis;
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
