// A whole hub that goes on from the journal of one that was killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "longhaul/base/file.h"
#include "longhaul/hub/round_log.h"
#include "tests/hub/journal_fixture.h"

namespace longhaul {
namespace {

using testing::dense_payload;
using testing::desk_options;
using testing::files_in;
using ::testing::HasSubstr;
using testing::HubDesk;
using testing::JournalTest;

// The whole hub on a journal that lost its tail.
class HubJournal : public JournalTest {
 protected:
  HubOptions hub_options() const {
    HubOptions options = desk_options("dd-sgd", 1);
    options.training.directory = directory_;
    options.training.journal.log_rounds = 4;
    return options;
  }
  // Ten rounds.
  void run() const {
    HubDesk desk(hub_options());
    const std::vector<HubDesk::Joined> all = desk.start(1);
    for (std::uint64_t step = 0; step < 10; ++step) desk.update(all[0], step, dense_payload(1));
    ASSERT_EQ(desk.core.status().next_round, 10U);
  }
};

TEST_F(HubJournal, GoesOnWhereItWasKilled) {
  run();
  HubDesk desk(hub_options());
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.core.status().next_round, 10U);
}

TEST_F(HubJournal, ReachesBackHoweverOftenTheHubIsKilled) {
  run();
  for (std::uint64_t step = 10; step < 14; ++step) {
    HubDesk desk(hub_options());
    ASSERT_TRUE(desk.core.resume().ok());
    Frame frame = desk.rejoin_frame("replica-0");
    const HubDesk::Joined back = desk.join(frame);
    EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled));  // from the first round on
    desk.update(back, step, dense_payload(1));
    ASSERT_EQ(desk.core.status().next_round, step + 1);
  }
}

TEST_F(HubJournal, ReachesBackThoughStepsHaveNoRound) {
  HubOptions options = hub_options();
  options.training.engine.recipe = find_recipe("local-sgd").value();  // a round every eight steps
  {
    HubDesk desk(options);
    const std::vector<HubDesk::Joined> all = desk.start(1);
    desk.update(all[0], 7, dense_payload(1));
  }
  for (std::uint64_t step = 15; step < 15 + 6 * 8; step += 8) {
    HubDesk desk(options);
    ASSERT_TRUE(desk.core.resume().ok());
    EXPECT_EQ(desk.core.status().next_round, step);
    const HubDesk::Joined back = desk.join(desk.rejoin_frame("replica-0"));
    EXPECT_TRUE(back.control.stream->take(Frame::kEnrolled)) << "from the first round on";
    EXPECT_FALSE(back.control.stream->take(Frame::kRestart));
    desk.update(back, step, dense_payload(1));
  }
}

TEST_F(HubJournal, ANameKeepsItsSlotThoughTheHubIsKilled) {
  HubOptions options = hub_options();
  options.training.replicas = 2;
  options.start_with = 2;
  {
    HubDesk desk(options);
    (void)desk.start(2);
  }
  HubDesk desk(options);
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.join(testing::join_frame("replica-1")).welcome.slot(), 1U);
  EXPECT_TRUE(desk.refusal(testing::join_frame("another")));
}

TEST_F(HubJournal, AnOlderDirectoryIsRefusedWithASentence) {
  std::filesystem::create_directories(directory_);
  std::filesystem::copy("tests/base/golden/v1/state.safetensors", directory_ / "run.safetensors");
  HubDesk desk(hub_options());
  EXPECT_THAT(desk.core.resume().error().message,
              HasSubstr("written by an older Longhaul, format 1"));
}

// Each time the one before it must still be there.
TEST_F(HubJournal, GoesOnHoweverOftenTheNewestSnapshotIsDamaged) {
  run();
  for (int i = 0; i < 3; ++i) {
    std::filesystem::path newest;
    for (const std::string& name : files_in(directory_)) {
      if (name.starts_with("snapshot-") && name.ends_with(".safetensors"))
        newest = directory_ / name;
    }
    ByteBuffer bytes = read_file(newest, 1 << 20).value();
    bytes.back() ^= std::byte{1};
    ASSERT_TRUE(write_file_atomically(newest, bytes).ok());
    HubDesk desk(hub_options());
    const Status resumed = desk.core.resume();
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_EQ(desk.core.status().next_round, 10U);
    EXPECT_TRUE(std::filesystem::exists(newest.string() + ".damaged"));
  }
}

TEST_F(HubJournal, AnotherRunsDirectoryIsRefused) {
  run();
  HubOptions other = hub_options();
  other.task.set_seed(2);
  HubDesk desk(std::move(other));
  const Status resumed = desk.core.resume();
  ASSERT_FALSE(resumed.ok());
  EXPECT_NE(resumed.error().message.find("another run"), std::string::npos);
}

TEST_F(HubJournal, AReplicaOfAnotherRunIsRefusedForGood) {
  run();
  HubDesk resumed(hub_options());
  ASSERT_TRUE(resumed.core.resume().ok());
  const Frame member = resumed.rejoin_frame("replica-0", 10);
  HubOptions elsewhere = hub_options();
  elsewhere.training.directory.clear();  // as if the hub had been started without its journal
  HubDesk anew(std::move(elsewhere));
  const auto refused = anew.refusal(member);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final());
  EXPECT_FALSE(resumed.refusal(member));
}

TEST_F(HubJournal, GoesOnThoughALogBeforeTheLastSnapshotIsDamaged) {
  run();
  const std::filesystem::path older = directory_ / "rounds-000000000004.log";
  const ByteBuffer bytes = read_file(older, 1 << 20).value();
  ASSERT_TRUE(write_file_atomically(older, ByteView(bytes).first(bytes.size() / 2)).ok());
  const std::filesystem::path newest = directory_ / "rounds-000000000008.log";
  ASSERT_TRUE(std::filesystem::exists(newest));
  std::filesystem::resize_file(newest, kLogHeaderBytes);
  HubDesk desk(hub_options());
  ASSERT_TRUE(desk.core.resume().ok());
  EXPECT_EQ(desk.core.status().next_round, 8U);
  // And closes rounds again.
  Frame frame = desk.rejoin_frame("replica-0", 8);
  const HubDesk::Joined back = desk.join(frame);
  desk.update(back, 8, dense_payload(1));
  EXPECT_EQ(desk.core.status().next_round, 9U);
}

}  // namespace
}  // namespace longhaul
