#include "longhaul/lab/progress.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/units.h"

namespace longhaul::lab {
namespace {

constexpr Seconds kBetweenRewrites{0.2};
constexpr Seconds kBeforeTheFirstLine{2};  // what is done by then needs none
constexpr Seconds kBetweenLines{10};

std::string rounded(Seconds time) {
  const auto seconds = static_cast<long>(std::ceil(time.count()));
  if (seconds < 90) return std::to_string(seconds) + " s";
  return std::to_string((seconds + 30) / 60) + " min";
}

}  // namespace

Progress::Progress(std::ostream& out, bool is_terminal, const Clock& clock, std::size_t runs,
                   std::size_t steps)
    : out_(out),
      is_terminal_(is_terminal),
      clock_(clock),
      runs_(runs),
      steps_(steps),
      start_(clock.now()),
      next_(is_terminal ? start_ : time_after(start_, kBeforeTheFirstLine)) {}

void Progress::start_run(const std::string& name) { name_ = name; }

std::string Progress::line(std::size_t steps_done) const {
  std::string text = '[' + std::to_string(runs_done_ + 1) + '/' + std::to_string(runs_) + "] " +
                     name_ + ": step " + std::to_string(steps_done) + " of " +
                     std::to_string(steps_);
  const auto done = static_cast<double>(runs_done_ * steps_ + steps_done);
  const double left = static_cast<double>(runs_ * steps_) - done;
  const Seconds spent = clock_.now() - start_;
  if (done > 0 && spent.count() > 0) text += ", about " + rounded(spent * (left / done)) + " left";
  return text;
}

void Progress::step(std::size_t steps_done) {
  if (clock_.now() < next_) return;
  out_ << (is_terminal_ ? "\r\033[K" : "") << line(steps_done) << (is_terminal_ ? "" : "\n")
       << std::flush;
  next_ = time_after(clock_.now(), is_terminal_ ? kBetweenRewrites : kBetweenLines);
}

void Progress::finish_run() { ++runs_done_; }

void Progress::clear() {
  if (is_terminal_) out_ << "\r\033[K" << std::flush;
}

}  // namespace longhaul::lab
