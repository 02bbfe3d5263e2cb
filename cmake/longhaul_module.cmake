# longhaul_module(name SOURCES … [DEPENDS …] [HEADER_LIBRARIES …] [LIBRARIES …])
# One module of the core: the static library longhaul_<name>, also called Longhaul::<name>. DEPENDS names modules (the
# arrows that tools/check_layers.py enforces). HEADER_LIBRARIES names external targets that the module's headers
# include. LIBRARIES names external targets that stay private to the module.

add_custom_target(longhaul_core)  # all modules of the core, without programs and tests

# Libraries that only the build of a module sees: installed ones do not mention them.
set(longhaul_build_only longhaul_asio)

function(longhaul_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;HEADER_LIBRARIES;LIBRARIES" ${ARGN})
  add_library(longhaul_${name} STATIC ${arg_SOURCES})
  add_library(Longhaul::${name} ALIAS longhaul_${name})
  target_compile_features(longhaul_${name} PUBLIC cxx_std_20)  # for projects that use this one
  target_include_directories(longhaul_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  set_target_properties(longhaul_${name} PROPERTIES  # for cmake/longhaul_install.cmake
    EXPORT_NAME ${name}
    LONGHAUL_DEPENDS "${arg_DEPENDS}"
    LONGHAUL_LIBRARIES "Threads::Threads;${arg_HEADER_LIBRARIES};${arg_LIBRARIES}")
  list(TRANSFORM arg_DEPENDS PREPEND longhaul_)
  list(TRANSFORM arg_LIBRARIES REPLACE "^(${longhaul_build_only})$" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(longhaul_${name}
    PUBLIC ${arg_DEPENDS} ${arg_HEADER_LIBRARIES} Threads::Threads
    PRIVATE $<BUILD_INTERFACE:longhaul_options> ${arg_LIBRARIES})
  add_dependencies(longhaul_core longhaul_${name})
endfunction()
