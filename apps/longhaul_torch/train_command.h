// longhaul train, the part that trains; and the evaluator of a rehearsal.
#pragma once

#include "apps/longhaul/train/train_options.h"

namespace longhaul::apps {

int run_train(const TrainCommandOptions& arguments);

}  // namespace longhaul::apps
