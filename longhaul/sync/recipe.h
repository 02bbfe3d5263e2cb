// A recipe: a named setting of the engine. All of them are rows of one table; a new one is a new
// row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/codec/codec.h"
#include "longhaul/plan/planner.h"
#include "longhaul/round/plan.h"
#include "longhaul/sync/local_steps.h"

namespace longhaul {

struct Recipe {
  std::string_view name;
  std::string_view summary;
  CodecOptions codec;
  bool keeps_residual = true;   // false: what the codec drops is lost
  float residual_decay = 1.0F;  // the residual is multiplied by it after each round
  // Each layer is a part of its own. It travels while others are still being computed, and is
  // merged just before its next use.
  bool is_by_layer = false;
  // The same under a plan with a schedule. Without one the model is one part.
  bool may_go_by_layer = false;
  LayerPolicy layers = LayerPolicy::kAsReady;  // which of them have a round in which step
  bool is_two_way = false;                     // the mean is compressed too, by the same codec
  Plan plan;
  LocalSteps local;
  PlannerKind planner = PlannerKind::kNone;  // what moves the plan during the run
  bool is_free = false;                      // on links without cost: a yardstick

  // Do layers travel on their own under that plan?
  [[nodiscard]] bool is_by_layer_with(const Plan& chosen) const {
    return is_by_layer || (may_go_by_layer && !chosen.schedule.empty());
  }
  // The share of what the codec held back that is not lost after a round.
  [[nodiscard]] float kept_residual() const { return keeps_residual ? residual_decay : 0.0F; }
  // How means come down; nothing: the cheapest exact way.
  [[nodiscard]] std::optional<WayDown> way_down() const {
    const bool is_as_small = is_two_way || codec.kind == CodecKind::kSharedLowRank;
    return is_as_small ? std::optional(WayDown::kTwoWay) : std::nullopt;
  }
};

std::span<const Recipe> all_recipes();

// The row of that name; the error suggests one, or lists them all.
Result<Recipe> find_recipe(std::string_view name);

}  // namespace longhaul
