// A client that goes on from a checkpoint: what it says, what it sends again and what not.
#include <gtest/gtest.h>

#include "tests/exchange/client_desk.h"

namespace longhaul {
namespace {

using testing::checked;
using testing::ClientCoreTest;
using testing::kClientElements;
using testing::payload_with;

// From a checkpoint after step 7 with three rounds in flight, of a state that it was given at 4.
class ResumedClientTest : public ClientCoreTest {
 protected:
  ResumedClientTest()
      : ClientCoreTest({.name = "me",
                        .slot = 1,
                        .elements = kClientElements,
                        .is_fresh = false,
                        .next_round = {.step = 5},
                        .first_step = 4,
                        .step = 8,
                        .own = {{{.step = 5},
                                 {.round = {.step = 5},
                                  .payload = checked(payload_with(1)),
                                  .attendance = {.since = 4}}},
                                {{.step = 6},
                                 {.round = {.step = 6},
                                  .payload = checked(payload_with(2)),
                                  .attendance = {.since = 4}}},
                                {{.step = 7},
                                 {.round = {.step = 7},
                                  .payload = checked(payload_with(3)),
                                  .attendance = {.since = 4, .sat_out = {{6, 6}}}}}}}) {}
};

TEST_F(ResumedClientTest, SaysWhereItStands) {
  EXPECT_FALSE(join_.is_fresh());
  EXPECT_EQ(join_.slot(), 1U);
  EXPECT_EQ(told_next(), RoundId{.step = 5});
  EXPECT_EQ(join_.first_step(), 4U);
  EXPECT_EQ(join_.step(), 8U);
  core_.submit({.round = {.step = 8}, .payload = checked(payload_with(4))});
  breaks();
  connect();
  EXPECT_EQ(join_.step(), 9U);
}

TEST_F(ResumedClientTest, SendsAgainWhatHasNotClosed) {
  closed(5, checked(payload_with(1)).digest());
  mean(5, 9);
  enroll(6);
  EXPECT_EQ(sent(), (std::vector<std::uint64_t>{6, 7}));
  EXPECT_EQ(attendances_,
            (std::vector<Attendance>{{.since = 4}, {.since = 4, .sat_out = {{6, 6}}}}));
  EXPECT_EQ(news_.owns.front(), checked(payload_with(1)).digest());
}

// What it did after the checkpoint, and does again, is in already.
TEST_F(ResumedClientTest, WhatHasClosedIsNotSent) {
  for (std::uint64_t step = 5; step < 10; ++step) {
    closed(step, 1);
    mean(step, 9);
  }
  enroll(10);
  core_.submit({.round = {.step = 8}, .payload = checked(payload_with(4))});
  EXPECT_TRUE(sent().empty());
  EXPECT_TRUE(core_.kept().empty());
}

}  // namespace
}  // namespace longhaul
