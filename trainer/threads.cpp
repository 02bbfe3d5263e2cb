#include "trainer/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <atomic>

namespace longhaul::trainer {
namespace {

// OpenBLAS is what the system's libblas stands for, so it is looked up at run time rather than
// linked.
template <typename Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// torch's own call does not bind OpenBLAS.
void set_open_blas_threads(int threads) {
  static std::atomic<int> is_set_to{0};
  if (is_set_to.exchange(threads) == threads) return;
  if (auto* set = find_function<void(int)>("openblas_set_num_threads")) set(threads);
}

void set_torch_threads(int threads) {
  thread_local int is_set_to = 0;
  if (is_set_to == threads) return;
  at::set_num_threads(threads);
  is_set_to = threads;
}

}  // namespace

void use_threads(std::size_t count) {
  set_open_blas_threads(static_cast<int>(count));
  set_torch_threads(static_cast<int>(count));
}

void use_calling_thread() { set_torch_threads(1); }

int open_blas_threads() {
  auto* threads = find_function<int()>("openblas_get_num_threads");
  return threads == nullptr ? 0 : threads();
}

}  // namespace longhaul::trainer
