#include "longhaul/base/errands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace longhaul {
namespace {

constexpr Seconds kErrandLimit{20};

TEST(ErrandThread, DoesErrandsInOrderAndHandsTheirEndsToTheLoop) {
  Mailbox<Errands::End> loop(100);
  ErrandThread errands([&](Errands::End end) { EXPECT_TRUE(loop.push(std::move(end))); });
  const std::thread::id here = std::this_thread::get_id();
  std::vector<int> ended;
  for (int i = 0; i < 10; ++i) {
    run_errand(
        errands,
        [i] {
          return std::make_unique<std::pair<int, std::thread::id>>(i, std::this_thread::get_id());
        },
        [&](const std::unique_ptr<std::pair<int, std::thread::id>>& done) {
          EXPECT_NE(done->second, here);
          EXPECT_EQ(std::this_thread::get_id(), here);
          ended.push_back(done->first);
        });
  }
  while (ended.size() < 10) {
    const auto end = loop.pop_until(deadline_after(kErrandLimit));
    ASSERT_TRUE(end);
    (*end)();
  }
  EXPECT_TRUE(std::ranges::is_sorted(ended));
}

TEST(ErrandThread, FinishesTheErrandUnderWayAndDropsTheOthers) {
  Mailbox<int> begun(10);
  Mailbox<int> released(10);
  int done = 0;
  int delivered = 0;
  {
    ErrandThread errands([&](const Errands::End& /*end*/) { ++delivered; });
    for (int i = 0; i < 3; ++i) {
      errands.run([&]() -> Errands::End {
        (void)begun.try_push(1);
        (void)released.pop_until(deadline_after(kErrandLimit));
        ++done;
        return [] {};
      });
    }
    ASSERT_TRUE(begun.pop_until(deadline_after(kErrandLimit)));
    released.close();
  }
  EXPECT_GE(done, 1);
  EXPECT_EQ(delivered, done);
}

}  // namespace
}  // namespace longhaul
