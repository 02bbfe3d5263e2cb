# longhaul_options: the compile options of every target of ours, as an interface target.

add_library(longhaul_options INTERFACE)

target_compile_options(longhaul_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-missing-field-initializers  # designated initialisers name what differs from the default
  $<$<BOOL:${LONGHAUL_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # Without it the compiler may fuse a*b+c into one instruction on the SIMD targets that have it, which
  # rounds once instead of twice: results would differ by machine. They must be the same bits everywhere.
  -ffp-contract=off)

if(LONGHAUL_SANITIZE)
  set(sanitize -fsanitize=${LONGHAUL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(longhaul_options INTERFACE ${sanitize}
    # g++ 12 sees uninitialised members in every std::variant that the sanitizers instrument.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(longhaul_options INTERFACE ${sanitize})
  target_compile_definitions(longhaul_options INTERFACE LONGHAUL_SANITIZED)
endif()

if(LONGHAUL_FUZZ)
  set(coverage -fprofile-instr-generate -fcoverage-mapping)  # tools/fuzz.sh prints the coverage of the decoders
  target_compile_options(longhaul_options INTERFACE ${coverage})
  target_link_options(longhaul_options INTERFACE ${coverage})
endif()

# longhaul_quick_build: the same for code whose speed nobody waits for, which is tests and the programs' own sources.
add_library(longhaul_quick_build INTERFACE)
target_link_libraries(longhaul_quick_build INTERFACE longhaul_options)
target_compile_options(longhaul_quick_build INTERFACE $<$<CONFIG:Release>:-O1>)  # two thirds of the time of -O3
