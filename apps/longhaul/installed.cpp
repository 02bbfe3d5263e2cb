#include "apps/longhaul/installed.h"

namespace longhaul::apps {

std::filesystem::path program_directory() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
}

std::filesystem::path scenario_directory() {
  return program_directory().parent_path() / "share" / "longhaul" / "scenarios";
}

}  // namespace longhaul::apps
