#include "longhaul/sync/learner_step.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

// Calls `with(part, elements)` for each part that has some of these elements.
template <typename With>
void for_parts(const Engine& engine, std::size_t first, std::size_t count, With with) {
  for (std::uint32_t i = 0; i < engine.parts(); ++i) {
    const Part& part = engine.part(i);
    const std::size_t begin = std::max(first, part.first);
    const std::size_t end = std::min(first + count, part.first + part.count);
    if (begin < end) with(i, end - begin);
  }
}

// Hands over each part once the gradient of all its elements is final.
class Backward {
 public:
  Backward(Learner& learner, Engine& engine) : learner_(learner), engine_(engine) {
    for (std::uint32_t i = 0; i < engine.parts(); ++i) missing_.push_back(engine.part(i).count);
    engine.begin_step();
  }

  void note(std::uint32_t part, std::size_t elements) {
    LONGHAUL_CHECK_LE(elements, missing_[part]);
    missing_[part] -= elements;
    if (missing_[part] == 0) engine_.ready(part, engine_.part(part).of(learner_.gradient()));
  }
  void note_rest() {
    for (std::uint32_t i = 0; i < engine_.parts(); ++i) {
      if (missing_[i] > 0) note(i, missing_[i]);
    }
  }

 private:
  Learner& learner_;
  Engine& engine_;
  std::vector<std::size_t> missing_;  // elements by part
};

}  // namespace

double compute_and_submit(Learner& learner, Engine& engine,
                          const std::function<void(std::uint32_t part)>& before_use,
                          const std::function<bool()>& end_step) {
  if (engine.parts() == 1 && !end_step) {
    const double loss = learner.compute_gradient();
    engine.submit(learner.gradient());
    return loss;
  }
  std::optional<Backward> backward;
  bool is_forward_done = false;
  const auto begin_backward = [&] {
    if (std::exchange(is_forward_done, true)) return;
    if (!end_step || end_step()) backward.emplace(learner, engine);
  };
  LayerWatch watch{.forward_done = begin_backward};
  watch.ready = [&](std::size_t first, std::size_t count) {
    begin_backward();
    if (!backward) return;
    for_parts(engine, first, count,
              [&](std::uint32_t part, std::size_t elements) { backward->note(part, elements); });
  };
  if (before_use) {
    watch.before_use = [&](std::size_t first, std::size_t count) {
      for_parts(engine, first, count,
                [&](std::uint32_t part, std::size_t /*elements*/) { before_use(part); });
    };
  }
  const double loss = learner.compute_gradient_by_layers(watch);
  begin_backward();
  if (backward) backward->note_rest();
  return loss;
}

}  // namespace longhaul
