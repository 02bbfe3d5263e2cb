// train --collective: a rank of a run without a hub.
#pragma once

#include "apps/longhaul/train/train_options.h"

namespace longhaul::apps {

// Returns the exit code. Ends the process itself if other ranks are gone.
int run_collective(const TrainCommandOptions& arguments);

}  // namespace longhaul::apps
