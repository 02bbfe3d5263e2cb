// --rate: how fast a program may send.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "longhaul/base/units.h"

namespace longhaul::apps {

// `rate` outlives the parsing.
inline void add_rate(CLI::App& command, std::optional<Bandwidth>& rate, const std::string& help) {
  command.add_option_function<std::string>(
      "--rate",
      [&rate](const std::string& text) {
        const Result<Bandwidth> parsed = parse_bandwidth(text);
        if (!parsed.ok()) throw CLI::ValidationError("--rate", parsed.error().message);
        if (!(parsed->bytes_per_second > 0))
          throw CLI::ValidationError("--rate", "expected a rate above zero, got " + text);
        rate = *parsed;
      },
      help);
}

}  // namespace longhaul::apps
