// Lines for people on standard error. A Log is a value that is passed down; there is no global one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace spdlog {
class logger;
}  // namespace spdlog

namespace longhaul {

// How much a log tells.
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };

Result<LogLevel> parse_log_level(std::string_view text);  // debug info warning error off

// Writes lines for people.
// Copies are cheap and write to the same place. Callable from every thread; a line is never torn.
class Log {
 public:
  explicit Log(LogLevel level = LogLevel::kInfo);

  // The same log for one speaker, whose name starts each of its lines ("replica 2").
  [[nodiscard]] Log named(const std::string& name) const;

  [[nodiscard]] bool is_enabled(LogLevel level) const;
  void write(LogLevel level, std::string_view message) const;

  void debug(std::string_view message) const { write(LogLevel::kDebug, message); }
  void info(std::string_view message) const { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const { write(LogLevel::kError, message); }

 private:
  explicit Log(std::shared_ptr<spdlog::logger> logger);

  std::shared_ptr<spdlog::logger> logger_;  // shared because every copy writes through it
};

}  // namespace longhaul
