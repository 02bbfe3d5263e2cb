// How much a command says on standard error: --log-level and --quiet.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "longhaul/base/log.h"

namespace longhaul::apps {

struct LogOptions {
  std::string level = "info";
  bool is_quiet = false;
};

// `options` outlives the parsing.
inline void add_log_options(CLI::App& command, LogOptions& options) {
  CLI::Option* quiet =
      command.add_flag("-q,--quiet", options.is_quiet,
                       "No progress: warnings and errors only (--log-level warning)");
  command
      .add_option("--log-level", options.level,
                  "What to say on standard error: debug, info, warning, error or off")
      ->capture_default_str()
      ->excludes(quiet)
      ->check([](const std::string& text) {
        const Result<LogLevel> level = parse_log_level(text);
        return level.ok() ? std::string() : level.error().message;
      });
}

// Precondition: they were parsed.
inline LogLevel log_level(const LogOptions& options) {
  return options.is_quiet ? LogLevel::kWarning : parse_log_level(options.level).value();
}

inline bool shows_progress(const LogOptions& options) {
  return log_level(options) <= LogLevel::kInfo;
}

}  // namespace longhaul::apps
