# Script of longhaul_embed: writes the bytes of ${input} as the function ${name} to ${output}.
# Bytes, not a string literal: nothing needs escaping, and no compiler's limit on literals applies.

file(READ ${input} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${output} "// Made by longhaul_embed.
// NOLINTBEGIN
#include <string_view>

namespace longhaul::embedded {
std::string_view ${name}() {
  static constexpr unsigned char kBytes[] = {
${bytes}
  };
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}
}  // namespace longhaul::embedded
// NOLINTEND
")
