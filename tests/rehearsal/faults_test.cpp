#include "longhaul/rehearsal/faults.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace longhaul {
namespace {

struct Seen {
  std::vector<std::string> faults;
  std::map<FaultKind, std::size_t> kinds;
  std::size_t most_at_once = 0;
  std::size_t under_way = 0;
};

Seen run_through(const FaultOptions& settings, Seconds* over = nullptr) {
  Faults faults(settings, 3);
  Seen seen;
  std::map<std::size_t, int> by_slot;
  int hubs = 0;
  const auto count_of = [&](const Fault& fault) -> int& {
    return fault.kind == FaultKind::kKillHub ? hubs : by_slot[fault.slot];
  };
  const Faults::Action begin = [&](const Fault& fault) -> Status {
    seen.faults.push_back(text_of(fault));
    ++seen.kinds[fault.kind];
    seen.most_at_once = std::max(seen.most_at_once, ++seen.under_way);
    EXPECT_EQ(++count_of(fault), 1) << text_of(fault);
    return Done{};
  };
  const Faults::Action end = [&](const Fault& fault) -> Status {
    --seen.under_way;
    --count_of(fault);
    return Done{};
  };
  Seconds time{};
  while (!faults.is_over(time) && time < Seconds(3600)) {
    time += Seconds(0.1);
    EXPECT_TRUE(faults.on_tick(time, begin, end).ok());
  }
  if (over != nullptr) *over = time;
  return seen;
}

TEST(Faults, EveryKindComesAndEachEndsAndNobodyHasTwoAtOnce) {
  const Seen seen = run_through({.count = 60});
  EXPECT_EQ(seen.faults.size(), 60U);
  EXPECT_EQ(seen.kinds.size(), 5U);
  EXPECT_EQ(seen.under_way, 0U);
  EXPECT_EQ(seen.most_at_once, 2U);
}

TEST(Faults, TheSeedSaysAll) {
  EXPECT_EQ(run_through({.count = 20, .seed = 3}).faults,
            run_through({.count = 20, .seed = 3}).faults);
  EXPECT_NE(run_through({.count = 20, .seed = 3}).faults,
            run_through({.count = 20, .seed = 4}).faults);
}

TEST(Faults, GoOnForAsLongAsAsked) {
  Seconds over{};
  const Seen seen = run_through({.duration = Seconds(300)}, &over);
  EXPECT_GE(over, Seconds(300));
  EXPECT_LT(over, Seconds(320));
  EXPECT_GT(seen.faults.size(), 50U);
}

TEST(Faults, EndWhatIsUnderWayAfterTheyAreStopped) {
  Faults faults({.count = 100}, 3);
  int under_way = 0;
  int begun = 0;
  const Faults::Action begin = [&](const Fault&) -> Status {
    ++begun;
    ++under_way;
    return Done{};
  };
  const Faults::Action end = [&](const Fault&) -> Status {
    --under_way;
    return Done{};
  };
  Seconds time{};
  while (under_way == 0) ASSERT_TRUE(faults.on_tick(time += Seconds(0.1), begin, end).ok());
  faults.stop();
  const int before = begun;
  for (; !faults.is_over(time) && time < Seconds(60); time += Seconds(0.1))
    ASSERT_TRUE(faults.on_tick(time, begin, end).ok());
  EXPECT_EQ(under_way, 0);
  EXPECT_EQ(begun, before);
}

}  // namespace
}  // namespace longhaul
