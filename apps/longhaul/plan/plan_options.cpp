#include "apps/longhaul/plan/plan_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "longhaul/base/text.h"
#include "longhaul/plan/builtin_profiles.h"
#include "longhaul/plan/layer_schedule.h"
#include "longhaul/sync/layer_times.h"

namespace longhaul::apps {
namespace {

constexpr double kLeastRatio = 1e-9;
constexpr std::uint64_t kMostParams = 10'000'000'000'000;
constexpr std::uint64_t kFewParams = 10'000;
// Recipes whose layers travel dense, so that times of layers are all that a plan needs.
constexpr std::array<const char*, 8> kRecipesByLayer{"d-sgd",           "wfbp",      "local-sgd",
                                                     "local-sgd-parts", "plsgd-enp", "dreamddp",
                                                     "dreamddp-late",   "auto"};
// A map has its own; only the ratio of down to up counts there.
constexpr const char* kAnyBandwidth = "100mbit";
constexpr const char* kAnyLatency = "50ms";
constexpr double kMostSecondsOnALine = 1e9;  // of a profile's bytes: thirty years

Error wrong(const std::string& option, const std::string& expected, const std::string& got) {
  return Error{ErrorCode::kInvalidArgument, option + ": expected " + expected + ", got " + got};
}

Result<Bandwidth> bandwidth_of(const std::string& option, const std::string& text) {
  Result<Bandwidth> rate = parse_bandwidth(text);
  if (!rate.ok()) return std::move(rate).error().within(option);
  if (rate->bytes_per_second <= 0) return wrong(option, "more than 0", text);
  return rate;
}

Result<Seconds> duration_of(const std::string& option, const std::string& text) {
  Result<Seconds> time = parse_duration(text);
  if (!time.ok()) return std::move(time).error().within(option);
  return time;
}

Result<RatioRange> limits_of(const PlanCommandOptions& arguments) {
  Result<double> least = parse_ratio(arguments.least_ratio);
  if (!least.ok()) return std::move(least).error().within("--min-ratio");
  if (*least < kLeastRatio) return wrong("--min-ratio", "at least 1e-9", arguments.least_ratio);
  Result<double> most = parse_ratio(arguments.most_ratio);
  if (!most.ok()) return std::move(most).error().within("--max-ratio");
  if (*most < *least) {
    return wrong("--max-ratio", "at least --min-ratio (" + arguments.least_ratio + ')',
                 arguments.most_ratio);
  }
  return RatioRange{.least = *least, .most = *most};
}

Result<Recipe> recipe_named(const std::string& name) {
  if (name.find(':') != std::string::npos)
    return wrong("--recipe", "a name without settings, which lab and rehearse take", name);
  Result<Recipe> recipe = find_recipe(name);
  if (!recipe.ok()) return std::move(recipe).error().within("--recipe");
  return recipe;
}

Result<Recipe> recipe_of(const PlanCommandOptions& arguments) {
  Result<Recipe> recipe = recipe_named(arguments.recipe.empty() ? "auto" : arguments.recipe);
  if (!recipe.ok()) return recipe;
  if (recipe->is_free) return wrong("--recipe", "one that uses the link", arguments.recipe);
  if (!arguments.codec.empty()) {
    Result<CodecOptions> codec = parse_codec(arguments.codec);
    if (!codec.ok()) return std::move(codec).error().within("--codec");
    recipe->codec = *codec;
  }
  const CodecKind kind = recipe->codec.kind;
  if (kind == CodecKind::kLowRank || kind == CodecKind::kSharedLowRank)
    return Error{ErrorCode::kInvalidArgument,
                 "--recipe, --codec: low rank needs the layers of a model, which a plan does not "
                 "have: try longhaul rehearse"};
  if (kind == CodecKind::kThreshold)
    return Error{ErrorCode::kInvalidArgument,
                 "--recipe, --codec: how much threshold sends depends on the gradients, which a "
                 "plan does not have: try longhaul lab"};
  return recipe;
}

// A recipe for a profile, with the period that is asked for.
Result<Recipe> layer_recipe_of(const PlanCommandOptions& arguments) {
  const std::string name = arguments.recipe.empty() ? "dreamddp" : arguments.recipe;
  Recipe recipe = LONGHAUL_TRY(recipe_named(name));
  if (std::ranges::find(kRecipesByLayer, name) == kRecipesByLayer.end())
    return wrong(
        "--recipe",
        "with --profile one of " + joined({kRecipesByLayer.begin(), kRecipesByLayer.end()}), name);
  const bool is_auto = recipe.planner == PlannerKind::kAuto;
  if (is_auto && (arguments.period > 0 || arguments.is_one_way))
    return Error{ErrorCode::kInvalidArgument,
                 "--period, --one-way: not with auto, which chooses the period and weighs plans "
                 "that go up and down"};
  const bool has_period = recipe.plan.period_steps > 1;
  if (!has_period && arguments.period > 1)
    return Error{ErrorCode::kInvalidArgument,
                 "--period: " + name + " has a round in every step, so its period is 1"};
  if (has_period) recipe.plan.period_steps = static_cast<int>(arguments.period);
  if (!recipe.is_by_layer && !is_auto) recipe.layers = LayerPolicy::kWhole;
  if (arguments.is_contiguous && recipe.layers != LayerPolicy::kScheduled)
    return wrong("--contiguous", "--recipe dreamddp", name);
  if (arguments.is_contiguous) recipe.layers = LayerPolicy::kContiguous;
  return recipe;
}

// A built-in profile, or a file.
Result<LayerProfile> profile_of(const std::string& written) {
  Result<LayerProfile> profile = builtin_profile(written);
  if (profile.ok()) return profile;
  std::error_code ignored;
  const bool is_file = written.ends_with(".json") || written.find('/') != std::string::npos ||
                       std::filesystem::exists(written, ignored);
  if (is_file) profile = read_profile(written);
  if (profile.ok()) return profile;
  Error error = std::move(profile).error().within("--profile");
  if (!is_file) error.message += " (a file ends in .json)";
  return error;
}

LayerProfile parts_of(const LayerProfile& layers, LayerPolicy policy, const std::string& how) {
  if (policy == LayerPolicy::kWhole) return merged_layers(layers, group_layers(layers, 1));
  const bool is_in_pieces =
      how.empty() ? layers.layers.size() >= kLeastLayersInParts : how == "cut";
  return is_in_pieces ? in_parts(layers) : layers;
}

Result<PlanOptions> request_for_a_model(const PlanCommandOptions& arguments) {
  if (arguments.params.empty() || arguments.step_time.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "expected --params and --step-time, or --profile, which has both"};
  Result<std::uint64_t> elements = parse_count(arguments.params);
  if (!elements.ok()) return std::move(elements).error().within("--params");
  if (*elements == 0 || *elements > kMostParams)
    return wrong("--params", "1 to 10000B", arguments.params);
  const Seconds compute = LONGHAUL_TRY(duration_of("--step-time", arguments.step_time));
  if (compute.count() <= 0) return wrong("--step-time", "more than 0", arguments.step_time);
  const Recipe recipe = LONGHAUL_TRY(recipe_of(arguments));
  const RatioRange limits = LONGHAUL_TRY(limits_of(arguments));
  return PlanOptions{.elements = static_cast<std::size_t>(*elements),
                     .replicas = arguments.replicas,
                     .link = {.compute = compute},
                     .recipe = recipe,
                     .limits = limits};
}

Result<PlanOptions> request_for_a_profile(const PlanCommandOptions& arguments) {
  for (const auto& [option, value] :
       {std::pair{"--params", &arguments.params}, std::pair{"--step-time", &arguments.step_time},
        std::pair{"--codec", &arguments.codec}}) {
    if (!value->empty())
      return Error{ErrorCode::kInvalidArgument,
                   std::string(option) +
                       ": not with --profile, whose layers have their times and "
                       "travel in fp32"};
  }
  if (arguments.is_one_way && !arguments.down.empty())
    return Error{ErrorCode::kInvalidArgument,
                 "--down: not with --one-way, where a layer crosses one line"};
  const LayerProfile layers = LONGHAUL_TRY(profile_of(arguments.profile));
  if (!(layers.bytes() > 0))
    return wrong("--profile", "layers with bytes", arguments.profile + ", which has none");
  const Recipe recipe = LONGHAUL_TRY(layer_recipe_of(arguments));
  const RatioRange limits = LONGHAUL_TRY(limits_of(arguments));
  constexpr double kParameterBytes = 4;
  return PlanOptions{.elements = static_cast<std::size_t>(layers.bytes() / kParameterBytes),
                     .replicas = arguments.replicas,
                     .link = {.compute = layers.forward() + layers.backward()},
                     .recipe = recipe,
                     .limits = limits,
                     .parts = parts_of(layers, recipe.layers, arguments.layers),
                     .is_one_way = arguments.is_one_way};
}

}  // namespace

std::string doubt_about_params(const std::string& written, std::uint64_t params) {
  const bool is_plain =
      !written.empty() && written.find_first_not_of("0123456789") == std::string::npos;
  if (params >= kFewParams || !is_plain) return "";
  return "--params " + written + " is a model of " + std::to_string(params) +
         " parameters; did you mean " + written + "M?";
}

Result<PlanOptions> plan_request(const PlanCommandOptions& arguments) {
  PlanOptions request = LONGHAUL_TRY(arguments.profile.empty() ? request_for_a_model(arguments)
                                                               : request_for_a_profile(arguments));
  const bool is_without_link = arguments.bandwidth.empty() || arguments.latency.empty();
  if (!arguments.profile.empty() && is_without_link)
    return Error{ErrorCode::kInvalidArgument, "expected --bandwidth and --latency"};
  if (!arguments.map && is_without_link)
    return Error{ErrorCode::kInvalidArgument,
                 "expected --bandwidth and --latency, or --map, which draws all of them"};
  if (arguments.bandwidth.empty() && !arguments.down.empty())
    return Error{ErrorCode::kInvalidArgument, "--down: expected --bandwidth beside it"};
  request.link.up = LONGHAUL_TRY(bandwidth_of(
      "--bandwidth", arguments.bandwidth.empty() ? kAnyBandwidth : arguments.bandwidth));
  request.link.down = LONGHAUL_TRY(arguments.down.empty() ? request.link.up
                                                          : bandwidth_of("--down", arguments.down));
  request.link.latency = LONGHAUL_TRY(
      duration_of("--latency", arguments.latency.empty() ? kAnyLatency : arguments.latency));
  const Bandwidth slowest{
      std::min(request.link.up.bytes_per_second, request.link.down.bytes_per_second)};
  if (request.parts.bytes() > kMostSecondsOnALine * slowest.bytes_per_second)
    return wrong("--bandwidth, --down", "less than 1e9 s for the model", to_string(slowest));
  return request;
}

}  // namespace longhaul::apps
