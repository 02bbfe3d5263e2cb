// longhaul evaluate, the part that scores.
#pragma once

#include "apps/longhaul/evaluate/evaluate_options.h"

namespace longhaul::apps {

int run_evaluate(const EvaluateCommandOptions& arguments);

}  // namespace longhaul::apps
