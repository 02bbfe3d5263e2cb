#include "longhaul/base/mailbox.h"

#include <algorithm>
#include <future>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(Mailbox, GivesValuesInTheOrderTheyCameIn) {
  Mailbox<int> mailbox(3);
  EXPECT_TRUE(mailbox.push(1));
  EXPECT_TRUE(mailbox.push(2));
  EXPECT_TRUE(mailbox.try_push(3));
  EXPECT_EQ(mailbox.pop(), 1);
  EXPECT_EQ(mailbox.pop(), 2);
  EXPECT_EQ(mailbox.pop(), 3);
}

TEST(Mailbox, NeedsRoomForOneValue) { EXPECT_THROW(Mailbox<int>(0), std::logic_error); }

TEST(Mailbox, RefusesMoreThanItsCapacityAndLeavesTheRefusedValueAlone) {
  Mailbox<std::unique_ptr<int>> mailbox(1);
  EXPECT_TRUE(mailbox.push(std::make_unique<int>(1)));
  auto refused = std::make_unique<int>(2);
  EXPECT_FALSE(mailbox.try_push(std::move(refused)));
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(*refused, 2);
}

TEST(Mailbox, GivesWhatItHoldsAfterCloseAndThenNothing) {
  Mailbox<int> mailbox(2);
  EXPECT_TRUE(mailbox.push(1));
  mailbox.close();
  mailbox.close();
  EXPECT_FALSE(mailbox.push(2));
  EXPECT_FALSE(mailbox.try_push(2));
  EXPECT_FALSE(mailbox.is_drained());
  EXPECT_EQ(mailbox.pop(), 1);
  EXPECT_EQ(mailbox.pop(), std::nullopt);
  EXPECT_TRUE(mailbox.is_drained());
}

TEST(Mailbox, GivesUpAtTheDeadline) {
  Mailbox<int> mailbox(1);
  const Deadline deadline = deadline_after(Seconds(0.002));
  EXPECT_EQ(mailbox.pop_until(deadline), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  EXPECT_FALSE(mailbox.is_drained());
}

TEST(Mailbox, TakesWhatIsThereEvenWhenTheDeadlineHasPassed) {
  Mailbox<int> mailbox(1);
  EXPECT_TRUE(mailbox.push(5));
  EXPECT_EQ(mailbox.pop_until(TimePoint{}), 5);
}

TEST(Mailbox, WakesAWaitingConsumerWithAValue) {
  Mailbox<int> mailbox(1);
  auto popped = std::async(std::launch::async, [&] { return mailbox.pop(); });
  EXPECT_TRUE(mailbox.push(9));
  EXPECT_EQ(popped.get(), 9);
}

TEST(Mailbox, WakesEveryWaitingConsumerWhenItCloses) {
  Mailbox<int> mailbox(1);
  std::vector<std::future<std::optional<int>>> consumers;
  for (int i = 0; i < 3; ++i) {
    consumers.push_back(std::async(std::launch::async, [&] { return mailbox.pop(); }));
  }
  mailbox.close();
  for (auto& consumer : consumers) EXPECT_EQ(consumer.get(), std::nullopt);
}

TEST(Mailbox, WakesABlockedProducerWhenItCloses) {
  Mailbox<int> mailbox(1);
  EXPECT_TRUE(mailbox.push(1));
  auto pushed = std::async(std::launch::async, [&] { return mailbox.push(2); });
  mailbox.close();
  EXPECT_FALSE(pushed.get());
}

TEST(Mailbox, WakesABlockedProducerWhenThereIsRoom) {
  Mailbox<int> mailbox(1);
  EXPECT_TRUE(mailbox.push(1));
  auto pushed = std::async(std::launch::async, [&] { return mailbox.push(2); });
  EXPECT_EQ(mailbox.pop(), 1);
  EXPECT_TRUE(pushed.get());
  EXPECT_EQ(mailbox.pop(), 2);
}

TEST(Mailbox, HandsEveryValueToExactlyOneConsumer) {
  constexpr int kProducers = 3;
  constexpr int kConsumers = 3;
  constexpr int kValuesEach = 500;
  Mailbox<int> mailbox(4);
  std::vector<std::vector<int>> taken(kConsumers);
  {
    std::vector<std::jthread> consumers;
    for (auto& mine : taken) {
      consumers.emplace_back([&] {
        while (auto value = mailbox.pop()) mine.push_back(*value);
      });
    }
    {
      std::vector<std::jthread> producers;
      for (int producer = 0; producer < kProducers; ++producer) {
        producers.emplace_back([&mailbox, producer] {
          for (int i = 0; i < kValuesEach; ++i)
            EXPECT_TRUE(mailbox.push(producer * kValuesEach + i));
        });
      }
    }
    mailbox.close();
  }
  std::vector<int> all;
  for (const auto& mine : taken) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  std::vector<int> expected(kProducers * kValuesEach);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace longhaul
