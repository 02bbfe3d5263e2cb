// The parts of the engine's model: one, or its layers.
#include <cmath>
#include <memory>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/sync/engine.h"

namespace longhaul {

std::vector<std::unique_ptr<Codec>> Engine::make_codecs(const std::vector<Part>& parts) const {
  std::vector<std::unique_ptr<Codec>> codecs;
  codecs.reserve(parts.size());
  for (const Part& part : parts)
    codecs.push_back(make_codec(options_.recipe.codec, layers_of(part, options_.layers), workers_));
  return codecs;
}

bool Engine::needs_other_parts(const Plan& plan) const {
  const Recipe& recipe = options_.recipe;
  return recipe.is_by_layer_with(plan) != recipe.is_by_layer_with(recipe.plan);
}

// With nothing in flight the state of the rule is the shared model and the position, and neither
// knows of parts. Codecs start afresh: all that they remember is where to begin their search.
void Engine::change_parts(const Plan& plan) {
  LONGHAUL_CHECK(in_flight_.empty() && plan_.merge == Merge::kLate);
  const bool was_whole = parts_.size() == 1;
  options_ = options_with(plan, plan_.merge);
  parts_ = parts_of(options_, parameters_.size());
  codecs_ = make_codecs(parts_);
  norm_before_ = was_whole && !is_step_unusable_ ? std::sqrt(squares_[0]) : 0;
  squares_.assign(parts_.size(), 0);
  std::vector<std::size_t> firsts;
  firsts.reserve(parts_.size());
  for (const Part& part : parts_) firsts.push_back(part.first);
  optimizer_->regroup(firsts);
  rule_ = make_merge_rule(options_, rule_->shared(), parameters_, *optimizer_, workers_);
}

}  // namespace longhaul
