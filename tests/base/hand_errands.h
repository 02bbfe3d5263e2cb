// Errands without a thread: done at once, or held until the test does them.
#pragma once

#include <deque>
#include <utility>

#include "longhaul/base/errands.h"

namespace longhaul::testing {

class HandErrands final : public Errands {
 public:
  void run(Errand errand) override {
    if (is_held) return waiting.push_back(std::move(errand));
    errand()();
  }
  // Does the one that has waited longest. Its end is still to be told to the loop.
  [[nodiscard]] End next() {
    End end = waiting.at(0)();
    waiting.pop_front();
    return end;
  }

  bool is_held = false;
  std::deque<Errand> waiting;
};

}  // namespace longhaul::testing
