#include "longhaul/exchange/protocol.h"

#include <string>

namespace longhaul {
namespace {

constexpr std::uint32_t kMostSteps = 1'000'000;

}  // namespace

v1::Plan to_message(const Plan& plan) {
  v1::Plan message;
  message.set_keep_ratio(plan.keep_ratio);
  message.set_delay_steps(static_cast<std::uint32_t>(plan.delay_steps));
  message.set_period_steps(static_cast<std::uint32_t>(plan.period_steps));
  message.set_merge(std::string(name_of(plan.merge)));
  return message;
}

Result<Plan> plan_from(const v1::Plan& message) {
  const Result<Merge> merge = parse_merge(message.merge());
  if (!merge.ok()) return merge.error();
  const double ratio = message.keep_ratio();
  if (!(ratio > 0 && ratio <= 1) || message.delay_steps() > kMostSteps ||
      message.period_steps() < 1 || message.period_steps() > kMostSteps)
    return Error{ErrorCode::kMismatch, "a plan out of range"};
  return Plan{.keep_ratio = ratio,
              .delay_steps = static_cast<int>(message.delay_steps()),
              .period_steps = static_cast<int>(message.period_steps()),
              .merge = *merge};
}

}  // namespace longhaul
