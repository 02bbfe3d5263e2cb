#include "longhaul/plan/measurements.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// In double: the squares of a run that diverges leave the range of float before its values do.
double square_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

double square_of(const Submission& submission, std::vector<float>& scratch) {
  if (submission.payload.empty()) return 0;
  std::ranges::fill(scratch, 0.0F);
  add(PayloadView::parse(submission.payload, scratch.size()).value(), 1.0F, scratch);
  return square_of(scratch);
}

}  // namespace

void StepTimer::add(Seconds step) {
  sum_ += step;
  ++steps_;
  if (sum_ < kStretch) return;
  if (last_.size() == kStretches) last_.erase(last_.begin());
  last_.push_back(sum_ / steps_);
  sum_ = Seconds(0);
  steps_ = 0;
}

Seconds StepTimer::typical() const {
  if (last_.empty()) return steps_ == 0 ? Seconds(0) : sum_ / steps_;
  std::vector<Seconds> steps = last_;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

RoundFacts facts_of(std::span<const Submission> submissions, std::span<const float> mean,
                    Conditions replicas, const Plan& current) {
  std::vector<float> scratch(mean.size());
  std::vector<WeightedSquare> messages;
  messages.reserve(submissions.size());
  for (const Submission& submission : submissions)
    messages.push_back({.weight = static_cast<double>(submission.weight),
                        .square = square_of(submission, scratch)});
  const double mean_square = square_of(mean);
  return {.replicas = std::move(replicas),
          .agreement = agreement_of(messages, mean_square),
          .mean_norm = std::sqrt(mean_square),
          .current = current};
}

}  // namespace longhaul
