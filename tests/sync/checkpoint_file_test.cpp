// Checkpoints as files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "longhaul/sync/checkpoint.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CheckpointFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static State state_at(std::uint64_t step) {
    State state;
    state.values["step"] = step;
    state.tensors["shared"] = {1, 2, 3};
    return state;
  }

  const std::filesystem::path directory_ =
      std::filesystem::path(::testing::TempDir()) /
      ("longhaul_checkpoint_file_" + std::to_string(::getpid()));
  const std::filesystem::path file_ = directory_ / "a.safetensors";
};

TEST_F(CheckpointFile, TheLastOneCounts) {
  CheckpointWriter writer(file_);
  EXPECT_EQ(read_checkpoint(file_).error().code, ErrorCode::kNotFound);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    ASSERT_TRUE(writer.write(state_at(step)).ok());
    EXPECT_EQ(writer.take_outcome()->value(), step);
    EXPECT_EQ(read_checkpoint(file_).value(), state_at(step));
  }
  EXPECT_FALSE(writer.take_outcome());
}

TEST_F(CheckpointFile, WhatWasHandedOverIsWrittenBeforeTheEnd) {
  {
    CheckpointWriter writer(file_);
    ASSERT_TRUE(writer.is_idle());
    writer.start(state_at(7));
  }
  EXPECT_EQ(read_checkpoint(file_).value(), state_at(7));
}

TEST_F(CheckpointFile, WhatWasBeingWrittenInAKillIsRemoved) {
  const std::filesystem::path left = file_.string() + ".4711-0.tmp";
  const std::filesystem::path foreign = file_.string() + ".mine.tmp";
  std::ofstream(left) << "half";
  std::ofstream(foreign) << "whole";
  CheckpointWriter writer(file_);
  EXPECT_TRUE(writer.write(state_at(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(CheckpointFile, ADiskThatRefusesIsToldOf) {
  CheckpointWriter writer(directory_ / "missing" / "a.safetensors");
  EXPECT_FALSE(writer.write(state_at(1)).ok());
  EXPECT_FALSE(writer.take_outcome()->ok());
}

TEST_F(CheckpointFile, ADamagedOneIsRefusedByName) {
  std::ofstream(file_) << "not a checkpoint";
  EXPECT_THAT(read_checkpoint(file_).error().message,
              AllOf(HasSubstr("a.safetensors: damaged"), HasSubstr("move it away")));
}

TEST_F(CheckpointFile, OneOfAnOlderFormatIsRefusedWithASentence) {
  const std::filesystem::path older = "tests/base/golden/v1/state.safetensors";
  EXPECT_THAT(read_checkpoint(older).error().message,
              HasSubstr("written by an older Longhaul, format 1"));
}

TEST(CheckpointIdentity, OfALongListNamesTheWordsThatDiffer) {
  State state;
  save_identity({{"settings", "train.lr=0.1 train.steps=60 "}}, state);
  EXPECT_THAT(check_identity({{"settings", "train.steps=60 train.lr=0.2 "}}, state).error().message,
              ::testing::EndsWith("settings 'train.lr=0.1', here 'train.lr=0.2'"));
  EXPECT_THAT(check_identity({{"settings", "train.steps=60 "}}, state).error().message,
              ::testing::EndsWith("settings 'train.lr=0.1', here ''"));
}

TEST(CheckpointIdentity, NamesWhatDiffers) {
  const RunIdentity run{{"scenario", "smoke"}, {"seed", "1"}};
  State state;
  EXPECT_FALSE(check_identity(run, state).ok());
  save_identity(run, state);
  EXPECT_TRUE(check_identity(run, state).ok());
  const Status other = check_identity({{"scenario", "smoke"}, {"seed", "2"}}, state);
  EXPECT_THAT(other.error().message, HasSubstr("seed '1', here '2'"));
}

}  // namespace
}  // namespace longhaul
