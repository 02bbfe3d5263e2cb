#include "longhaul/base/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace longhaul {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // if not, it stays as it is
}

int descriptor_limit() {
  rlimit limit{};
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<int>(kMost);
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace longhaul
