#include "apps/longhaul/command/installed.h"

#include "trainer/catalogue.h"

namespace longhaul::apps {

std::filesystem::path program_directory() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
}

Catalogue catalogue() {
  Catalogue known = trainer::catalogue();
  known.scenarios = program_directory().parent_path() / "share" / "longhaul" / "scenarios";
  return known;
}

}  // namespace longhaul::apps
