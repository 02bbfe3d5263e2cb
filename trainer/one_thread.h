// Keeps torch and its BLAS to the calling thread: replicas run in parallel, their operations do
// not.
#pragma once

namespace longhaul::trainer {

// Called at the start of every computation, as part of the setting belongs to the calling thread.
// Without it threads fight for the cores, and sums change with their number.
void use_one_thread();

// What OpenBLAS is set to; 0 where another BLAS is loaded.
int open_blas_threads();

}  // namespace longhaul::trainer
