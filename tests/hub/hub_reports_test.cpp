// What replicas say they measured is doubted: planners divide by it.
#include <gtest/gtest.h>

#include <limits>

#include "tests/hub/hub_desk.h"

namespace longhaul {
namespace {

using testing::HubDesk;

TEST(HubReports, FiguresThatCannotBeAreNotTaken) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  HubDesk desk;
  const std::vector<HubDesk::Joined> all = desk.start();
  v1::Report usual;
  usual.set_compute_s(0.1);
  usual.set_round_trip_s(0.04);
  desk.report(all[0], usual);
  for (const double wrong : {kEndless, -kEndless, nan, -1.0, 1e300, 1e-300}) {
    v1::Report report;
    report.set_compute_s(wrong);
    report.set_round_trip_s(wrong);
    v1::Sample& sample = *report.add_down();
    sample.set_bytes(1000);
    sample.set_duration_s(wrong);
    v1::Sample& other = *report.add_down();
    other.set_bytes(wrong);
    other.set_duration_s(1);
    desk.report(all[0], report);
  }
  const Measured measured = desk.core.status().replicas.at("replica-0").measured;
  EXPECT_EQ(measured.compute.typical(), Seconds(0.1));
  EXPECT_EQ(measured.latency, Seconds(0.02));
  EXPECT_FALSE(measured.down.low());
}

}  // namespace
}  // namespace longhaul
