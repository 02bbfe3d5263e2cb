# longhaul_fuzz(name SOURCES … [DEPENDS …] [LIBRARIES …])
# A libFuzzer program <name>_fuzz; tools/fuzz.sh runs every program of that form.

function(longhaul_fuzz name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_executable(${name}_fuzz ${arg_SOURCES})
  target_include_directories(${name}_fuzz PRIVATE ${PROJECT_SOURCE_DIR})
  list(TRANSFORM arg_DEPENDS PREPEND longhaul_)
  target_link_libraries(${name}_fuzz PRIVATE longhaul_options ${arg_DEPENDS} ${arg_LIBRARIES})
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)  # the main function
endfunction()
