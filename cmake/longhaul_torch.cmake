# longhaul_use_torch(target): links libtorch to a target, privately.
# A file that includes torch needs 20 to 30 s and 1 GB to compile, so never more than two compile at once,
# whatever the number of cores: a Ninja job pool of two that all these targets share.

find_package(Torch REQUIRED)
set_property(GLOBAL PROPERTY JOB_POOLS torch=2)

function(longhaul_use_torch target)
  target_link_libraries(${target} PRIVATE ${TORCH_LIBRARIES})
  set_target_properties(${target} PROPERTIES
    JOB_POOL_COMPILE torch
    UNITY_BUILD OFF  # several at once would need several GB
    DISABLE_PRECOMPILE_HEADERS ON)  # they were compiled without torch's flags
endfunction()
