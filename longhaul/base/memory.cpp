#include "longhaul/base/memory.h"

#include <limits>  // before the question: the standard library knows whether it stands on glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace longhaul {

void keep_freed_memory() {
#ifdef __GLIBC__
  // One arena: the others cannot hold buffers of more than 64 MiB, and a buffer is often freed by
  // another thread than the one that asked for it.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

void return_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace longhaul
