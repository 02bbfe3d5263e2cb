// Where the programs and their files lie: PREFIX/bin and PREFIX/share/longhaul, in a build tree
// too.
#pragma once

#include <filesystem>

namespace longhaul::apps {

std::filesystem::path program_directory();
std::filesystem::path scenario_directory();  // of the built-in scenarios

}  // namespace longhaul::apps
