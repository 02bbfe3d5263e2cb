// Refuses values that CLI11 accepts and no command can use.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace longhaul::apps {

// CLI11 reads -1 as the largest number there is.
inline CLI::Validator whole_number(std::uint64_t least = 0) {
  return {[least](const std::string& text) -> std::string {
            std::uint64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, failure] = std::from_chars(text.data(), end, value);
            if (failure == std::errc() && rest == end && value >= least) return "";
            return "expected a whole number, at least " + std::to_string(least) + ", got " + text;
          },
          ""};
}

}  // namespace longhaul::apps
