#include "longhaul/sync/learner_step.h"

#include <algorithm>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul {

double compute_and_submit(Learner& learner, Engine& engine) {
  if (engine.parts() == 1) {
    const double loss = learner.compute_gradient();
    engine.submit(learner.gradient());
    return loss;
  }
  std::vector<std::size_t> missing;  // elements by part
  for (std::uint32_t i = 0; i < engine.parts(); ++i) missing.push_back(engine.part(i).count);
  const auto note = [&](std::uint32_t number, std::size_t elements) {
    LONGHAUL_CHECK_LE(elements, missing[number]);
    missing[number] -= elements;
    if (missing[number] == 0) engine.ready(number, engine.part(number).of(learner.gradient()));
  };
  engine.begin_step();
  const auto ready = [&](std::size_t first, std::size_t count) {
    for (std::uint32_t i = 0; i < engine.parts(); ++i) {
      const Part& part = engine.part(i);
      const std::size_t begin = std::max(first, part.first);
      const std::size_t end = std::min(first + count, part.first + part.count);
      if (begin < end) note(i, end - begin);
    }
  };
  const double loss = learner.compute_gradient_by_layers({.ready = ready});
  for (std::uint32_t i = 0; i < engine.parts(); ++i) {
    if (missing[i] > 0) note(i, missing[i]);
  }
  return loss;
}

}  // namespace longhaul
