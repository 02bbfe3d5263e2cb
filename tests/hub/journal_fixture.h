// A directory with a hub's journal in it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "longhaul/hub/journal.h"
#include "tests/hub/hub_desk.h"
#include "tests/hub/test_directory.h"

namespace longhaul::testing {

inline constexpr std::uint64_t kJournalRun = 77;

inline JournalRound round_at(std::uint64_t step) {
  return {.id = {.step = step},
          .from = step == 0 ? RoundId{} : after({.step = step - 1}),
          .number = step,
          .elements = kDeskElements,
          .contributors = {{.slot = 0, .digest = step},
                           {.slot = 2, .digest = step + 1, .attendance = {.since = step}}},
          .mean = checked_payload(static_cast<float>(step))};
}

inline std::vector<std::string> files_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path log_file() const {
    for (const std::string& name : files_in(directory_)) {
      if (name.ends_with(".log")) return directory_ / name;
    }
    return {};
  }
  std::vector<std::uint64_t> steps_left() const {
    const auto left = Journal::read(directory_, kJournalRun);
    std::vector<std::uint64_t> steps;
    if (!left.ok() || !left->has_value()) return steps;
    for (const JournalRound& round : (*left)->rounds) steps.push_back(round.id.step);
    return steps;
  }

  [[nodiscard]] Journal::Left read() const {
    auto left = Journal::read(directory_, kJournalRun);
    EXPECT_TRUE(left.ok() && left->has_value());
    return left.ok() && left->has_value() ? std::move(**left) : Journal::Left{};
  }
  [[nodiscard]] bool kept(Journal& journal, std::uint64_t step) const {
    return kept(journal, RoundId{.step = step});
  }
  [[nodiscard]] bool kept(Journal& journal, RoundId next) const {
    return journal.keep_in(directory_, kJournalRun, State{}, next).ok() && journal.settle().ok();
  }

  std::filesystem::path directory_ = test_directory();
};

}  // namespace longhaul::testing
