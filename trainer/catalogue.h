// The names of the trainer's models and data sets, for programs that do not link libtorch.
#pragma once

#include "longhaul/job/scenario.h"

namespace longhaul::trainer {

Catalogue catalogue();  // without a directory of scenarios

}  // namespace longhaul::trainer
