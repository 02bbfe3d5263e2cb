// What a recipe says of replicas that take steps of their own, beside the plan.
#pragma once

namespace longhaul {

struct LocalSteps {
  // Delay in periods: the row's delay_steps follow the period, unless they are set themselves. 0:
  // in steps.
  int delay_periods = 0;
  // False: a replica goes on from the shared model, without its own unmerged messages. Long delays
  // then diverge, which is what the late correction is for.
  bool compensates_delay = true;
};

}  // namespace longhaul
