// A recipe whose schedule is not even: a part has two rounds in a period, and a step two parts.
#pragma once

#include "longhaul/sync/recipe.h"

namespace longhaul::testing {

inline Recipe uneven_recipe() {
  return {.name = "uneven-late",
          .codec = parse_codec("top_k/bf16").value(),
          .plan = {.keep_ratio = 0.1,
                   .delay_steps = 3,
                   .period_steps = 4,
                   .merge = Merge::kLate,
                   .schedule = {{1}, {}, {0, 2}, {1}}},
          .local = {.fragments = 3}};
}

}  // namespace longhaul::testing
