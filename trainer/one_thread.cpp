#include "trainer/one_thread.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace longhaul::trainer {
namespace {

// OpenBLAS is what the system's libblas stands for, so it is looked up at run time rather than
// linked.
template <typename Function>
Function* find_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void set_open_blas_threads(int threads) {
  if (auto* set = find_function<void(int)>("openblas_set_num_threads")) set(threads);
}

}  // namespace

void use_one_thread() {
  // torch's own call does not bind OpenBLAS; once per process is enough for it.
  static const bool is_blas_set = (set_open_blas_threads(1), true);
  thread_local const bool is_torch_set = (at::set_num_threads(1), true);
  static_cast<void>(is_blas_set && is_torch_set);
}

int open_blas_threads() {
  auto* threads = find_function<int()>("openblas_get_num_threads");
  return threads == nullptr ? 0 : threads();
}

}  // namespace longhaul::trainer
