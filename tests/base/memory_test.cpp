#include "longhaul/base/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <thread>

#include "longhaul/base/scratch.h"

// The sanitizers' own allocators keep what is freed from being used again, which is their purpose.
#if defined(__GLIBC__) && !defined(LONGHAUL_SANITIZED)
namespace longhaul {
namespace {

constexpr std::size_t kBufferBytes = 80'000'000;

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Asked for and filled by one thread, freed by another.
void use_a_buffer() {
  std::unique_ptr<Scratch<char>> buffer;
  std::thread([&] {
    buffer = std::make_unique<Scratch<char>>(kBufferBytes);
    std::memset(buffer->data(), 1, buffer->size());
  }).join();
}

TEST(Memory, ABufferThatWasFreedIsThereForTheNextOne) {
  keep_freed_memory();
  use_a_buffer();
  const long before = page_faults();
  use_a_buffer();
  EXPECT_LT(page_faults() - before, 1000) << "it has 19,531 pages";
}

}  // namespace
}  // namespace longhaul
#endif
