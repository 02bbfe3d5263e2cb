// Where the programs and their files lie: PREFIX/bin and PREFIX/share/longhaul, in a build tree
// too.
#pragma once

#include <filesystem>

#include "longhaul/job/scenario.h"

namespace longhaul::apps {

std::filesystem::path program_directory();
// The built-in scenarios, and the models and data sets of the trainer.
Catalogue catalogue();

}  // namespace longhaul::apps
