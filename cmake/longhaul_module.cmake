# longhaul_module(name SOURCES … [DEPENDS …] [LIBRARIES …])
# One module of the core: the static library longhaul_<name>. DEPENDS names modules (the arrows that
# tools/check_layers.py enforces), LIBRARIES names external targets, which stay private to the module.

add_custom_target(longhaul_core)  # all modules of the core, without programs and tests

function(longhaul_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(longhaul_${name} STATIC ${arg_SOURCES})
  target_compile_features(longhaul_${name} PUBLIC cxx_std_20)  # for projects that add this one
  target_include_directories(longhaul_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  list(TRANSFORM arg_DEPENDS PREPEND longhaul_)
  target_link_libraries(longhaul_${name}
    PUBLIC ${arg_DEPENDS} Threads::Threads
    PRIVATE longhaul_options ${arg_LIBRARIES})
  add_dependencies(longhaul_core longhaul_${name})
endfunction()
