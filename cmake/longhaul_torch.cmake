# longhaul_use_torch(target): links libtorch to a target, privately.
# torch/torch.h takes 20 to 30 s and 1 GB to compile. It is compiled once, as a precompiled header of all such targets.
# Even so never more than two files compile at once, whatever the number of cores: a Ninja job pool that these
# targets share.

find_package(Torch REQUIRED)
set_property(GLOBAL PROPERTY JOB_POOLS torch=2)

add_library(longhaul_torch_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
target_link_libraries(longhaul_torch_headers PRIVATE longhaul_options ${TORCH_LIBRARIES})
target_precompile_headers(longhaul_torch_headers PRIVATE <torch/torch.h>)

function(longhaul_use_torch target)
  target_link_libraries(${target} PRIVATE ${TORCH_LIBRARIES})
  add_dependencies(${target} longhaul_torch_headers)
  set_target_properties(${target} PROPERTIES
    PRECOMPILE_HEADERS_REUSE_FROM longhaul_torch_headers  # in place of those of the tests
    JOB_POOL_COMPILE torch
    UNITY_BUILD OFF)  # several at once would need several GB
endfunction()
