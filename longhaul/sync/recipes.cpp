#include <array>
#include <cmath>
#include <cstddef>

#include "longhaul/base/text.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {
namespace {

constexpr CodecOptions kDenseFp32{.kind = CodecKind::kDense, .values = ValueFormat::kFp32};
constexpr CodecOptions kDenseBf16{.kind = CodecKind::kDense, .values = ValueFormat::kBf16};
constexpr CodecOptions kChunks2Bit{.kind = CodecKind::kChunkTopK, .values = ValueFormat::k2Bit};
constexpr CodecOptions kDense4Bit{.kind = CodecKind::kDense, .values = ValueFormat::k4Bit};
constexpr CodecOptions kTopBf16{.kind = CodecKind::kTopK, .values = ValueFormat::kBf16};

// The more replicas are averaged, the less noise is in a mean, and the longer a step with it may
// be.
float with_dense_means(std::size_t replicas) {
  return replicas < 3 ? 0.6F : replicas < 6 ? 0.8F : 1.0F;
}

// An element that one replica sends is divided by the number of all, and few send the same
// elements.
float with_sparse_means(std::size_t replicas) {
  return static_cast<float>(std::sqrt(static_cast<double>(replicas)));
}

constexpr std::array kRecipes{
    Recipe{.name = "ideal",
           .summary = "D-SGD on links without cost: the yardstick",
           .codec = kDenseFp32,
           .is_free = true},
    Recipe{.name = "d-sgd", .summary = "synchronous SGD, dense gradients", .codec = kDenseFp32},
    Recipe{.name = "wfbp",
           .summary = "synchronous SGD, each layer sent as soon as its gradient is ready",
           .codec = kDenseFp32,
           .is_by_layer = true},
    Recipe{
        .name = "d-sgd-bf16", .summary = "synchronous SGD, gradients in bf16", .codec = kDenseBf16},
    Recipe{.name = "d-ef-sgd",
           .summary = "synchronous SGD, compressed gradients with error feedback",
           .codec = kTopBf16,
           .plan = {.keep_ratio = 0.05}},
    Recipe{.name = "dd-sgd",
           .summary = "dense gradients, merged late",
           .codec = kDenseFp32,
           .plan = {.delay_steps = 2}},
    Recipe{.name = "dd-ef-sgd",
           .summary = "compressed gradients with error feedback, merged late",
           .codec = kTopBf16,
           .plan = {.keep_ratio = 0.03, .delay_steps = 4}},
    Recipe{.name = "dga",
           .summary = "own gradient at once by plain SGD, the mean takes its place when it arrives",
           .codec = kDenseFp32,
           .plan = {.delay_steps = 4, .merge = Merge::kOwnStep}},
    Recipe{.name = "static",
           .summary = "fixed compression and delay, with the late correction",
           .codec = kTopBf16,
           .plan = {.keep_ratio = 0.05, .delay_steps = 3, .merge = Merge::kLate}},
    Recipe{.name = "local-sgd",
           .summary = "steps of its own, then the mean of what they moved: local SGD",
           .codec = kDenseFp32,
           .plan = {.period_steps = 8, .merge = Merge::kLate}},
    Recipe{.name = "local-sgd-parts",
           .summary = "local SGD, each layer sent as soon as the last step of a period is made",
           .codec = kDenseFp32,
           .is_by_layer = true,
           .plan = {.period_steps = 8, .merge = Merge::kLate},
           .planner = PlannerKind::kLayers},
    Recipe{.name = "plsgd-enp",
           .summary = "local SGD that averages as many layers in each step of a period",
           .codec = kDenseFp32,
           .is_by_layer = true,
           .layers = LayerPolicy::kEqualNumber,
           .plan = {.period_steps = 8, .merge = Merge::kLate},
           .planner = PlannerKind::kLayers},
    Recipe{.name = "dreamddp",
           .summary = "DreamDDP: local SGD that averages those layers in a step whose way it hides",
           .codec = kDenseFp32,
           .is_by_layer = true,
           .layers = LayerPolicy::kScheduled,
           .plan = {.period_steps = 8, .merge = Merge::kLate},
           .planner = PlannerKind::kLayers},
    Recipe{.name = "dreamddp-late",
           .summary = "DreamDDP's schedule; layers that cannot be hidden are merged late",
           .codec = kDenseFp32,
           .is_by_layer = true,
           .layers = LayerPolicy::kScheduledLate,
           .plan = {.period_steps = 8, .merge = Merge::kLate},
           .planner = PlannerKind::kLayers},
    Recipe{.name = "cocod-sgd",
           .summary = "CoCoD-SGD: local SGD, each mean merged one period later",
           .codec = kDenseFp32,
           .plan = {.delay_steps = 8, .period_steps = 8, .merge = Merge::kLate},
           .local = {.delay_periods = 1}},
    Recipe{.name = "pipe-sgd",
           .summary = "Pipe-SGD: dense gradients, merged in the next step",
           .codec = kDenseFp32,
           .plan = {.delay_steps = 1}},
    Recipe{.name = "overlap-local-sgd",
           .summary = "Overlap-Local-SGD: local steps, pulled towards an anchor one period old",
           .codec = kDenseFp32,
           .keeps_residual = false,
           .plan = {.delay_steps = 8, .period_steps = 8, .merge = Merge::kAnchor},
           .local = {.delay_periods = 1, .mixing = 0.4F, .outer_momentum = 0.7F}},
    Recipe{.name = "olco3-oc",
           .summary = "OLCO3, one-way: compressed moves of local steps, merged three periods later",
           .codec = kTopBf16,
           .plan = {.keep_ratio = 0.02, .delay_steps = 6, .period_steps = 2, .merge = Merge::kLate},
           .local = {.delay_periods = 3}},
    Recipe{.name = "olco3-tc",
           .summary = "OLCO3, two-way: the mean is compressed too, and what it lacks comes later",
           .codec = kTopBf16,
           .is_two_way = true,
           .plan = {.keep_ratio = 0.05, .delay_steps = 8, .period_steps = 4, .merge = Merge::kLate},
           .local = {.delay_periods = 2}},
    Recipe{.name = "olco3-vq",
           .summary = "OLCO3 with low rank, both ways: factors on a common basis are averaged",
           .codec = {.kind = CodecKind::kSharedLowRank},
           .plan = {.delay_steps = 8, .period_steps = 4, .merge = Merge::kLate},
           .local = {.delay_periods = 2}},
    Recipe{.name = "diloco",
           .summary = "DiLoCo: many local steps, then an outer step of Nesterov with their mean",
           .codec = kDenseFp32,
           .plan = {.period_steps = 30, .merge = Merge::kOuter},
           .local = {.outer = OptimizerKind::kNesterov,
                     .outer_lr = 0.7F,
                     .outer_lr_by_replicas = with_dense_means,
                     .outer_momentum = 0.9F}},
    Recipe{
        .name = "streaming-diloco",
        .summary = "Streaming DiLoCo: in fragments, 4 bits, some steps late, half of it mixed in",
        .codec = kDense4Bit,
        .keeps_residual = false,
        .plan = {.delay_steps = 5, .period_steps = 30, .merge = Merge::kOuter},
        .local = {.fragments = 3,
                  .mixing = 0.5F,
                  .outer = OptimizerKind::kNesterov,
                  .outer_lr = 0.7F,
                  .outer_momentum = 0.9F}},
    Recipe{.name = "sparseloco",
           .summary = "SparseLoCo: many local steps, 64 values of each 4096 in 2 bits",
           .codec = kChunks2Bit,
           .residual_decay = 0.95F,
           .plan = {.keep_ratio = 1.0 / 64, .period_steps = 30, .merge = Merge::kOuter},
           .local = {.outer_lr_by_replicas = with_sparse_means}},
    Recipe{.name = "cocktail",
           .summary = "CocktailSGD: a random tenth, the largest fifth of it, 4 bits, one step late",
           .codec = {.kind = CodecKind::kCocktail, .values = ValueFormat::k4Bit},
           .plan = {.keep_ratio = 0.02, .delay_steps = 1}},
    Recipe{.name = "accordion",
           .summary = "a tenth or nearly everything, by how fast the gradient's norm changes",
           .codec = kTopBf16,
           .planner = PlannerKind::kAccordion},
    Recipe{.name = "deco",
           .summary = "DeCo: compression and delay from the live network, as published",
           .codec = kTopBf16,
           .planner = PlannerKind::kDeco},
    Recipe{.name = "deco-late",
           .summary = "DeCo's plan with the late correction",
           .codec = kTopBf16,
           .plan = {.merge = Merge::kLate},
           .planner = PlannerKind::kDeco},
    Recipe{.name = "deco-ahead",
           .summary = "DeCo's plan with the look-ahead",
           .codec = kTopBf16,
           .plan = {.merge = Merge::kAhead},
           .planner = PlannerKind::kDeco},
    Recipe{
        .name = "auto",
        .summary =
            "compression, delay, period and merge rule by the least predicted time to the target",
        .codec = kTopBf16,
        .may_go_by_layer = true,
        .plan = {.merge = Merge::kLate},
        .planner = PlannerKind::kAuto},
    Recipe{.name = "frozen",
           .summary = "what auto chooses at the start, kept",
           .codec = kTopBf16,
           .may_go_by_layer = true,
           .plan = {.merge = Merge::kLate},
           .planner = PlannerKind::kFrozen},
    Recipe{.name = "clairvoyant",
           .summary = "auto with the links known in advance: what measuring them costs",
           .codec = kTopBf16,
           .may_go_by_layer = true,
           .plan = {.merge = Merge::kLate},
           .planner = PlannerKind::kClairvoyant},
    Recipe{.name = "random-plan",
           .summary = "the bytes of auto with delays drawn by lot: what a planner must beat",
           .codec = kTopBf16,
           .plan = {.merge = Merge::kLate},
           .planner = PlannerKind::kRandom},
};

}  // namespace

std::span<const Recipe> all_recipes() { return kRecipes; }

Result<Recipe> find_recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name) return recipe;
    names.emplace_back(recipe.name);
  }
  const std::string got = '"' + std::string(name) + '"';
  const std::string meant = did_you_mean(name, names);
  return Error{ErrorCode::kInvalidArgument,
               meant.empty()
                   ? "recipe: expected one of " + joined(names) + ", got " + got
                   : "recipe: none is called " + got + meant + " (`longhaul recipes` lists them)"};
}

}  // namespace longhaul
