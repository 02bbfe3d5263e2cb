#include "longhaul/hub/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

v1::StatusReport report_with(const Plan& plan) {
  v1::StatusReport report;
  report.set_is_started(true);
  *report.mutable_plan() = to_message(plan);
  return report;
}

TEST(StatusView, TellsThePlan) {
  const Plan plan{.keep_ratio = 0.02, .delay_steps = 6, .period_steps = 3, .merge = Merge::kLate};
  const v1::StatusReport report = report_with(plan);
  EXPECT_EQ(plan_from_json(status_json(report)).value(), plan);
  EXPECT_THAT(status_text(report),
              HasSubstr("\nplan      keep ratio 0.02, delay 6, period 3, merge late\n"));
}

TEST(StatusView, SaysSoIfThePlanCannotBeRead) {
  v1::StatusReport report = report_with({});
  report.mutable_plan()->set_merge("by\x1b[2Jmagic");
  const nlohmann::ordered_json json = status_json(report);
  for (const char* key : {"keep_ratio", "delay_steps", "period_steps", "merge"})
    EXPECT_TRUE(json.at(key).is_null()) << key;
  EXPECT_THAT(status_text(report),
              HasSubstr("\nplan      not readable: no merge rule by?[2Jmagic\n"));
}

}  // namespace
}  // namespace longhaul
