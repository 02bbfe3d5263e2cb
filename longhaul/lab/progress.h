// How far a lab is, for people: one rewritten line on a terminal, a plain line now and then
// elsewhere.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::lab {

class Progress {
 public:
  // `runs` of `steps` steps each; the clock and `out` outlive it.
  Progress(std::ostream& out, bool is_terminal, const Clock& clock, std::size_t runs,
           std::size_t steps);

  void start_run(const std::string& name);
  void step(std::size_t steps_done);
  void finish_run();  // a run that stopped early counts as a whole one
  void clear();       // leaves no half line behind

 private:
  [[nodiscard]] std::string line(std::size_t steps_done) const;

  std::ostream& out_;
  const bool is_terminal_;
  const Clock& clock_;
  const std::size_t runs_;
  const std::size_t steps_;
  std::string name_;
  std::size_t runs_done_ = 0;
  TimePoint start_;
  TimePoint next_;  // when the next line is due
};

}  // namespace longhaul::lab
