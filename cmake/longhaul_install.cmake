# longhaul_install(component …)
# Installs modules as components of find_package(Longhaul COMPONENTS …), each with the modules below it. A component
# needs only the packages that its own modules link; the table says which package has a target.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(longhaul_packages
  "Threads::Threads|find_dependency(Threads)"
  "nlohmann_json::nlohmann_json|find_dependency(nlohmann_json)"
  "spdlog::spdlog|find_dependency(spdlog)"
  "OpenSSL::Crypto|find_dependency(OpenSSL 3 COMPONENTS Crypto)"
  "protobuf::libprotobuf|find_dependency(Protobuf)"
  "PkgConfig::hwy|longhaul_pkg_config(hwy libhwy)"
  "PkgConfig::xxhash|longhaul_pkg_config(xxhash libxxhash)"
  "PkgConfig::tomlplusplus|longhaul_pkg_config(tomlplusplus tomlplusplus)"
  "PkgConfig::grpc|longhaul_pkg_config(grpc grpc++)")

# Appends a module to the list `out`, behind the modules that it depends on.
function(longhaul_collect module out)
  set(modules ${${out}})
  if(NOT module IN_LIST modules)
    get_target_property(depends longhaul_${module} LONGHAUL_DEPENDS)
    foreach(below IN LISTS depends)
      longhaul_collect(${below} modules)
    endforeach()
    list(APPEND modules ${module})
  endif()
  set(${out} ${modules} PARENT_SCOPE)
endfunction()

# The lines of LonghaulConfig.cmake that find the packages of a module.
function(longhaul_package_lines module out)
  set(lines)
  get_target_property(libraries longhaul_${module} LONGHAUL_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(NOT library OR library IN_LIST longhaul_build_only)
      continue()
    endif()
    set(rows ${longhaul_packages})
    list(FILTER rows INCLUDE REGEX "^${library}\\|")
    if(NOT rows)
      message(FATAL_ERROR "longhaul_install: ${module} links ${library}, which the table of packages does not have")
    endif()
    string(REGEX REPLACE "^[^|]*\\|" "" line "${rows}")
    string(APPEND lines "  ${line}\n")
  endforeach()
  set(${out} "${lines}" PARENT_SCOPE)
endfunction()

function(longhaul_install_module module)
  install(TARGETS longhaul_${module} EXPORT Longhaul_${module} ARCHIVE COMPONENT libraries)
  install(EXPORT Longhaul_${module} NAMESPACE Longhaul:: DESTINATION ${longhaul_cmake_dir} COMPONENT libraries)
  get_target_property(generated longhaul_${module} LONGHAUL_GENERATED_HEADERS)
  if(generated)
    install(DIRECTORY ${generated}/ DESTINATION include COMPONENT libraries FILES_MATCHING PATTERN "*.h")
  else()
    # Headers of the relay's loop and of the SIMD kernels are for their own module.
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/longhaul/${module} DESTINATION include/longhaul COMPONENT libraries
      FILES_MATCHING PATTERN "*.h"
      PATTERN "relay_loop.h" EXCLUDE PATTERN "relay_direction.h" EXCLUDE
      PATTERN "kernels_target.h" EXCLUDE PATTERN "*_inl.h" EXCLUDE)
  endif()
endfunction()

function(longhaul_install)
  set(longhaul_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Longhaul)
  list(JOIN ARGN " " longhaul_components)
  set(modules)
  set(longhaul_lists)
  foreach(component IN LISTS ARGN)
    set(below)
    longhaul_collect(${component} below)
    list(JOIN below " " names)
    string(APPEND longhaul_lists "set(longhaul_modules_of_${component} ${names})\n")
    longhaul_collect(${component} modules)
  endforeach()
  set(longhaul_includes)
  foreach(module IN LISTS modules)
    longhaul_install_module(${module})
    longhaul_package_lines(${module} lines)
    string(APPEND longhaul_includes "if(${module} IN_LIST longhaul_modules)\n${lines}"
      "  include(\"\${CMAKE_CURRENT_LIST_DIR}/Longhaul_${module}.cmake\")\nendif()\n")
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/LonghaulConfig)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LonghaulConfig.cmake.in ${out}.cmake
    INSTALL_DESTINATION ${longhaul_cmake_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${out}Version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${out}.cmake ${out}Version.cmake DESTINATION ${longhaul_cmake_dir} COMPONENT libraries)
endfunction()
