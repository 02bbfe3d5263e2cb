#include "longhaul/base/check.h"

#include <stdexcept>

namespace longhaul::detail {

void check_failed(const char* file, int line, const std::string& claim) {
  std::ostringstream text;
  text << file << ':' << line << ": check failed: " << claim;
  throw std::logic_error(text.str());
}

}  // namespace longhaul::detail
