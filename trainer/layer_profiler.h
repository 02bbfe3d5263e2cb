// Measures the forward and backward time of each layer on real steps of a learner.
#pragma once

#include <cstddef>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/plan/layer_profile.h"
#include "longhaul/sync/learner.h"

namespace longhaul::trainer {

// Neighbouring tensors of one module as one layer: conv1.bias and conv1.weight become conv1. The
// name of a module ends before the last dot of its tensors' names. The order stays, names differ.
LayerTable modules_of(const LayerTable& tensors);

// Times the modules of a model, which are the layers of its profile. All times are medians.
// - Forward: from the first use of a module to the first use of the next one; of the last, to the
//   loss.
// - Backward: from the gradient that was final before to the module's own; of the first, from the
//   loss. So the backward time of an output layer that is tied to the embedding counts for the
//   layer before it.
// A layer that a step does not use takes no time.
class LayerProfiler {
 public:
  // They outlive the profiler. The learner tells of its layers (LayerWatch), which are `tensors`.
  LayerProfiler(Learner& learner, const LayerTable& tensors, const Clock& clock);

  // Computes two gradients that are not counted: the first ones are slower.
  void warm_up();
  // Computes two gradients: one with hooks, and one without, to know what the hooks cost.
  void step();

  // These need at least one step. `batch`: samples of a gradient.
  [[nodiscard]] LayerProfile profile(std::size_t batch) const;
  [[nodiscard]] Seconds step_time() const;
  [[nodiscard]] Seconds step_time_with_hooks() const;

 private:
  struct Stamps;  // of one step

  [[nodiscard]] Stamps stamped_step();
  void keep(const Stamps& stamps);
  [[nodiscard]] Seconds plain_step();

  Learner& learner_;
  const Clock& clock_;
  LayerTable modules_;
  // One value per step.
  std::vector<std::vector<double>> forward_s_;   // by module
  std::vector<std::vector<double>> backward_s_;  // by module
  std::vector<double> step_s_;
  std::vector<double> step_with_hooks_s_;
  std::vector<double> overhead_shares_;
};

}  // namespace longhaul::trainer
