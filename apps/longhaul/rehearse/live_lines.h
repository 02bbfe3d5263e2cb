// Shows the progress of a rehearsal on standard error: one line for the run and one for each
// replica. On a terminal they are rewritten in place.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

#include "longhaul/rehearsal/rehearsal.h"

namespace longhaul::apps {

class LiveLines {
 public:
  explicit LiveLines(std::string target) : target_(std::move(target)) {}

  void show(const RehearsalView& view);
  void next_run();

 private:
  void add(std::string& text, const std::string& line);

  bool is_terminal_ = ::isatty(STDERR_FILENO) != 0;
  std::string target_;
  std::size_t lines_ = 0;
  double next_s_ = 0;
  std::size_t faults_ = 0;  // that were told of
};

}  // namespace longhaul::apps
