#include "longhaul/base/log.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

template <typename Function>
std::string stderr_of(Function write) {
  testing::internal::CaptureStderr();
  write();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesWhatItsLevelLetsThrough) {
  const Log log(LogLevel::kWarning);
  EXPECT_EQ(stderr_of([&] { log.info("too chatty"); }), "");
  EXPECT_THAT(stderr_of([&] { log.warning("link lost"); }),
              EndsWith("warning longhaul: link lost\n"));
  EXPECT_THAT(stderr_of([&] { log.error("hub gone"); }), EndsWith("error longhaul: hub gone\n"));
}

TEST(Log, BeginsEachLineWithDateTimeAndZone) {
  EXPECT_THAT(stderr_of([] { Log().info("listening"); }),
              MatchesRegex("20[0-9][0-9]-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9]+Z info "
                           "longhaul: listening\n"));
}

TEST(Log, IsSilentWhenOff) {
  const Log log(LogLevel::kOff);
  EXPECT_FALSE(log.is_enabled(LogLevel::kError));
  EXPECT_FALSE(log.is_enabled(LogLevel::kOff));
  EXPECT_EQ(stderr_of([&] { log.write(LogLevel::kOff, "nothing"); }), "");
}

TEST(Log, NamesItsSpeakerAndKeepsItsLevel) {
  const Log log = Log(LogLevel::kWarning).named("replica 2");
  EXPECT_THAT(stderr_of([&] { log.error("lost round 7"); }), HasSubstr("replica 2: lost round 7"));
  EXPECT_FALSE(log.is_enabled(LogLevel::kInfo));
}

TEST(Log, TakesBracesAsText) {
  EXPECT_THAT(stderr_of([] { Log().info("{} {0} }{"); }), HasSubstr("{} {0} }{"));
}

TEST(ParseLogLevel, KnowsTheFiveLevels) {
  EXPECT_EQ(parse_log_level("debug").value(), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("off").value(), LogLevel::kOff);
  EXPECT_EQ(parse_log_level("loud").error().message,
            "log level: expected debug, info, warning, error or off, got \"loud\"");
}

}  // namespace
}  // namespace longhaul
