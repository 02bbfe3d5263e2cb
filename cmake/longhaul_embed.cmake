# longhaul_embed(target FILES …)
# Puts files into a target: web/report/report.js becomes longhaul::embedded::report_js(), a std::string_view of
# its bytes. The functions are declared in longhaul/lab/embedded.h, by hand: the list is short.

function(longhaul_embed target)
  cmake_parse_arguments(arg "" "" "FILES" ${ARGN})
  foreach(file IN LISTS arg_FILES)
    cmake_path(GET file FILENAME name)
    string(MAKE_C_IDENTIFIER ${name} name)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
    add_custom_command(
      OUTPUT ${source}
      COMMAND ${CMAKE_COMMAND} -D input=${file} -D name=${name} -D output=${source}
              -P ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
      DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/write_embedded.cmake
      VERBATIM)
    target_sources(${target} PRIVATE ${source})
  endforeach()
endfunction()
