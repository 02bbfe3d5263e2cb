// How many threads torch and its BLAS use for one operation.
#pragma once

#include <cstddef>

namespace longhaul::trainer {

// Called at the start of every gradient: torch's setting belongs to the calling thread, that of
// OpenBLAS to the process. Sums change with the number. Where several replicas share a machine it
// is 1: else their threads fight for the cores.
void use_threads(std::size_t count);

// Keeps torch to the calling thread and leaves OpenBLAS as it is: for work beside gradients, whose
// bits would change with OpenBLAS.
void use_calling_thread();

// The number of threads of OpenBLAS; 0 where another BLAS is loaded.
int open_blas_threads();

}  // namespace longhaul::trainer
