// A recipe: a named setting of the engine. All of them are rows of one table; a new one is a new
// row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"
#include "longhaul/codec/codec.h"
#include "longhaul/plan/plan.h"

namespace longhaul {

// What an update carries.
enum class What : std::uint8_t { kGradient };

// What happens to a mean when it is due.
enum class Merge : std::uint8_t {
  kOptimizer,  // the optimizer takes a step with it
  kOwnStep,    // the replica stepped with its own gradient at once; the mean takes that one's place
               // (DGA)
};

struct Recipe {
  std::string_view name;
  std::string_view summary;
  What what = What::kGradient;
  CodecSpec codec;
  bool keeps_residual = true;  // false: what the codec drops is lost
  Plan plan;
  Merge merge = Merge::kOptimizer;
  bool is_free = false;  // on links without cost: a yardstick
};

std::span<const Recipe> all_recipes();

// The row of that name; the error lists them all.
Result<Recipe> find_recipe(std::string_view name);

}  // namespace longhaul
