# longhaul_test(name SOURCES … [DEPENDS …] [LIBRARIES …] [LABEL unit])
# A GoogleTest program longhaul_<name>, each test of which CTest knows by name. LABEL is the ring (unit, multi,
# torch, e2e), with slow beside it where needed: LABEL e2e slow.

include(GoogleTest)

# GoogleTest's headers, compiled once for all test programs: they take longer than most tests.
add_library(longhaul_test_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/empty.cpp)
target_link_libraries(longhaul_test_headers PRIVATE longhaul_quick_build GTest::gtest_main GTest::gmock)
target_precompile_headers(longhaul_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)

add_custom_target(longhaul_tests)        # the test programs that the sanitizers run: rings unit and multi
add_custom_target(longhaul_multi_tests)  # those with several threads

option(LONGHAUL_WHOLE_PROGRAMS
  "Run each test program once, not once for each of its tests: sanitizers make every start slow" OFF)

function(longhaul_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LIBRARIES;LABEL" ${ARGN})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  add_executable(longhaul_${name} ${arg_SOURCES})
  target_include_directories(longhaul_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  list(TRANSFORM arg_DEPENDS PREPEND longhaul_)
  set(options longhaul_quick_build)
  if(arg_LABEL MATCHES torch)  # the precompiled headers of torch have the flags of the trainer
    set(options longhaul_options)
  endif()
  target_link_libraries(longhaul_${name}
    PRIVATE ${options} ${arg_DEPENDS} ${arg_LIBRARIES} GTest::gtest_main GTest::gmock)
  target_precompile_headers(longhaul_${name} REUSE_FROM longhaul_test_headers)
  # From precompiled headers g++ 12 also warns of the standard library's own code, wrongly.
  target_compile_options(longhaul_${name} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-restrict>)
  if(arg_LABEL MATCHES "^(unit|multi)$")
    add_dependencies(longhaul_tests longhaul_${name})
  endif()
  set(shards 1)
  if(arg_LABEL STREQUAL multi)
    add_dependencies(longhaul_multi_tests longhaul_${name})
    set(shards 4)  # tests with several threads wait much
  endif()
  if(LONGHAUL_WHOLE_PROGRAMS)
    foreach(shard RANGE 1 ${shards})
      add_test(NAME ${name}.${shard} COMMAND longhaul_${name} --gtest_brief=1
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
      math(EXPR index "${shard} - 1")
      set_tests_properties(${name}.${shard} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 600
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(longhaul_${name}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_TIMEOUT 120
    NO_PRETTY_VALUES  # parameters have names; their bytes would differ from run to run
    TEST_LIST longhaul_${name}_tests)
  # Labels are set by a file that CTest reads after the discovered tests: PROPERTIES of gtest_discover_tests
  # keeps only the first of several.
  set(label_file ${CMAKE_CURRENT_BINARY_DIR}/longhaul_${name}_labels.cmake)
  file(CONFIGURE OUTPUT ${label_file} @ONLY CONTENT
    "if(longhaul_@name@_tests)  # empty until the program is built
  set_tests_properties(\${longhaul_@name@_tests} PROPERTIES LABELS \"@arg_LABEL@\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${label_file})
endfunction()
