#include "longhaul/telemetry/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace longhaul {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(EventLog, WritesOneObjectPerLineWithItsNameFirst) {
  std::ostringstream out;
  write_event(out, "step", {{"step", 3}, {"loss", 0.25}});
  write_event(out, "run_finished", nlohmann::ordered_json::object());
  EXPECT_EQ(out.str(),
            "{\"event\":\"step\",\"step\":3,\"loss\":0.25}\n{\"event\":\"run_finished\"}\n");
}

TEST(EventLine, SaysTheTimeOfDayAfterTheName) {
  const WallClockTime time{std::chrono::milliseconds(1'794'961'862'123)};
  EXPECT_EQ(event_line("round", {{"step", 3}}, time),
            "{\"event\":\"round\",\"time\":\"2026-11-18T00:31:02.123Z\",\"step\":3}");
  const auto now = nlohmann::json::parse(event_line("a", nlohmann::ordered_json::object()));
  EXPECT_THAT(now.at("time").get<std::string>(),
              MatchesRegex("20[0-9][0-9]-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9][0-9][0-9]Z"));
}

TEST(EventLine, TakesNoFieldsThatItWritesItself) {
  EXPECT_THROW((void)event_line("a", {{"time", "noon"}}), std::logic_error);
  EXPECT_THROW((void)event_line("a", {{"event", "b"}}), std::logic_error);
}

TEST(Rfc3339, IsUtcWithMillisecondsAlsoBeforeTheEpoch) {
  using std::chrono::milliseconds;
  EXPECT_EQ(rfc3339(WallClockTime{milliseconds(7)}), "1970-01-01T00:00:00.007Z");
  EXPECT_EQ(rfc3339(WallClockTime{milliseconds(-1)}), "1969-12-31T23:59:59.999Z");
}

TEST(EventLog, ReadsBackWhatItWrote) {
  std::stringstream text;
  write_event(text, "a", {{"text", "two\nlines"}});
  write_event(text, "b", {{"value", 0.1}});
  const auto events = read_events(text);
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ((*events)[0].at("text"), "two\nlines");
  EXPECT_EQ((*events)[1].at("value"), 0.1);
}

TEST(EventLog, TextThatIsNotUtf8DoesNotStopIt) {
  std::stringstream text;
  write_event(text, "a", {{"path", "\xff"}});
  EXPECT_TRUE(read_events(text).ok());
}

TEST(EventLog, ALineCutOffByACrashIsLeftOut) {
  std::istringstream text("{\"event\":\"a\"}\n{\"event\":\"b\",\"st");
  const auto events = read_events(text);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->size(), 1U);
}

TEST(EventLog, OtherLinesThatAreNotEventsAreErrorsWithTheirNumber) {
  for (const char* line : {"nonsense", "[1]", "{}", "{\"event\":3}"}) {
    std::istringstream text("{\"event\":\"a\"}\n" + std::string(line) + "\n");
    const auto events = read_events(text);
    ASSERT_FALSE(events.ok()) << line;
    EXPECT_THAT(events.error().message, HasSubstr("line 2: expected an event"));
  }
}

}  // namespace
}  // namespace longhaul
