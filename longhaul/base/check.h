// Checks of our own bugs: a failed one throws std::logic_error with place and operands.
// Only main and the bindings catch it; errors of the world are Results instead.
#pragma once

#include <sstream>
#include <string>

namespace longhaul::detail {

[[noreturn]] void check_failed(const char* file, int line, const std::string& claim);

template <typename A, typename B>
[[noreturn]] void check_failed(const char* file, int line, const char* claim, const A& a,
                               const B& b) {
  std::ostringstream text;
  text << claim << " (" << a << " against " << b << ')';
  check_failed(file, line, text.str());
}

}  // namespace longhaul::detail

#define LONGHAUL_CHECK(claim)                                                   \
  do {                                                                          \
    if (!(claim)) ::longhaul::detail::check_failed(__FILE__, __LINE__, #claim); \
  } while (false)

#define LONGHAUL_CHECK_OP_(a, op, b)                                                               \
  do {                                                                                             \
    const auto& check_a_ = (a);                                                                    \
    const auto& check_b_ = (b);                                                                    \
    if (!(check_a_ op check_b_)) {                                                                 \
      ::longhaul::detail::check_failed(__FILE__, __LINE__, #a " " #op " " #b, check_a_, check_b_); \
    }                                                                                              \
  } while (false)

#define LONGHAUL_CHECK_EQ(a, b) LONGHAUL_CHECK_OP_(a, ==, b)
#define LONGHAUL_CHECK_NE(a, b) LONGHAUL_CHECK_OP_(a, !=, b)
#define LONGHAUL_CHECK_LT(a, b) LONGHAUL_CHECK_OP_(a, <, b)
#define LONGHAUL_CHECK_LE(a, b) LONGHAUL_CHECK_OP_(a, <=, b)
#define LONGHAUL_CHECK_GT(a, b) LONGHAUL_CHECK_OP_(a, >, b)
#define LONGHAUL_CHECK_GE(a, b) LONGHAUL_CHECK_OP_(a, >=, b)
