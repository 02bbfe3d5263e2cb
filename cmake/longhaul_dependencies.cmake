# Every external library except libtorch (cmake/longhaul_torch.cmake); tools/install_deps.sh installs them.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)        # PkgConfig::hwy
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)  # PkgConfig::xxhash
pkg_check_modules(tomlplusplus REQUIRED IMPORTED_TARGET tomlplusplus)
find_package(Protobuf REQUIRED)  # protobuf::libprotobuf, protobuf::protoc
pkg_check_modules(grpc REQUIRED IMPORTED_TARGET grpc++)
find_program(LONGHAUL_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)

# Asio without Boost is headers only and ships no file for CMake or pkg-config.
find_path(LONGHAUL_ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(longhaul_asio INTERFACE IMPORTED)
target_include_directories(longhaul_asio INTERFACE ${LONGHAUL_ASIO_INCLUDE_DIR})
target_compile_definitions(longhaul_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED
  ASIO_DISABLE_FENCED_BLOCK)  # each loop has one thread; ThreadSanitizer does not understand fences

# Drawn into the report page, which opens offline.
find_file(LONGHAUL_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH REQUIRED)

if(LONGHAUL_TESTS AND NOT LONGHAUL_FUZZ)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
