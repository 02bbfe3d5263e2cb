// How well the shared model did on held-out data, and which of its states that was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace longhaul {

// Loss and accuracy of a model on held-out samples.
struct Evaluation {
  double loss = 0;
  double accuracy = 0;      // share of right answers; for text, of right next characters
  std::size_t samples = 0;  // images, or windows of text
};

// An evaluation of the shared model at a step.
// Replicas tell it to each other.
struct Score {
  std::uint64_t step = 0;  // steps that the model had done
  Evaluation evaluation;
  bool is_closing = false;  // of the last model, on all held-out data
};

}  // namespace longhaul
