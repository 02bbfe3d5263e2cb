#include "apps/longhaul/plan/plan_options.h"

#include <cmath>

namespace longhaul::apps {
namespace {

constexpr double kLeastRatio = 1e-9;
constexpr std::uint64_t kMostParams = 10'000'000'000'000;
constexpr std::uint64_t kFewParams = 10'000;
// A map has its own; only the ratio of down to up counts there.
constexpr const char* kAnyBandwidth = "100mbit";
constexpr const char* kAnyLatency = "50ms";

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

Result<Recipe> recipe_of(const PlanCommandOptions& arguments) {
  if (arguments.recipe.find(':') != std::string::npos)
    return wrong("--recipe", "a name without settings, which lab and rehearse take",
                 arguments.recipe);
  Result<Recipe> recipe = find_recipe(arguments.recipe);
  if (!recipe.ok()) return std::move(recipe).error().within("--recipe");
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

}  // namespace

std::string doubt_about_params(const std::string& written, std::uint64_t params) {
  const bool is_plain = written.find_first_not_of("0123456789") == std::string::npos;
  if (params >= kFewParams || !is_plain) return "";
  return "--params " + written + " is a model of " + std::to_string(params) +
         " parameters; did you mean " + written + "M?";
}

Result<PlanOptions> plan_request(const PlanCommandOptions& arguments) {
  Result<std::uint64_t> elements = parse_count(arguments.params);
  if (!elements.ok()) return std::move(elements).error().within("--params");
  if (*elements == 0 || *elements > kMostParams)
    return wrong("--params", "1 to 10000B", arguments.params);
  Seconds compute = LONGHAUL_TRY(duration_of("--step-time", arguments.step_time));
  if (compute.count() <= 0) return wrong("--step-time", "more than 0", arguments.step_time);
  if (!arguments.map && (arguments.bandwidth.empty() || arguments.latency.empty()))
    return Error{ErrorCode::kInvalidArgument,
                 "expected --bandwidth and --latency, or --map, which draws all of them"};
  if (arguments.bandwidth.empty() && !arguments.down.empty())
    return Error{ErrorCode::kInvalidArgument, "--down: expected --bandwidth beside it"};
  const Bandwidth up = LONGHAUL_TRY(bandwidth_of(
      "--bandwidth", arguments.bandwidth.empty() ? kAnyBandwidth : arguments.bandwidth));
  const Bandwidth down =
      LONGHAUL_TRY(arguments.down.empty() ? up : bandwidth_of("--down", arguments.down));
  const Seconds latency = LONGHAUL_TRY(
      duration_of("--latency", arguments.latency.empty() ? kAnyLatency : arguments.latency));
  const Recipe recipe = LONGHAUL_TRY(recipe_of(arguments));
  const RatioRange limits = LONGHAUL_TRY(limits_of(arguments));
  return PlanOptions{.elements = static_cast<std::size_t>(*elements),
                     .replicas = arguments.replicas,
                     .link = {.compute = compute, .latency = latency, .up = up, .down = down},
                     .recipe = recipe,
                     .limits = limits};
}

}  // namespace longhaul::apps
