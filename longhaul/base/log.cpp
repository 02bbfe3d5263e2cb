#include "longhaul/base/log.h"

#include <array>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace longhaul {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLevelNames = {{
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warning", LogLevel::kWarning},
    {"error", LogLevel::kError},
    {"off", LogLevel::kOff},
}};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  for (const auto& [name, level] : kLevelNames) {
    if (name == text) return level;
  }
  return Error{
      ErrorCode::kInvalidArgument,
      "log level: expected debug, info, warning, error or off, got \"" + std::string(text) + "\""};
}

// Not registered with spdlog's own registry, which is a singleton.
Log::Log(LogLevel level)
    : logger_(std::make_shared<spdlog::logger>("longhaul",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(to_spdlog(level));
  // RFC 3339 and UTC, as in events.
  logger_->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", spdlog::pattern_time_type::utc);
}

Log::Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}

Log Log::named(const std::string& name) const { return Log(logger_->clone(name)); }

bool Log::is_enabled(LogLevel level) const {
  return level != LogLevel::kOff && logger_->should_log(to_spdlog(level));
}

void Log::write(LogLevel level, std::string_view message) const {
  if (is_enabled(level))
    logger_->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace longhaul
