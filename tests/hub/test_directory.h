// A directory of its own for each test: several run at once.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace longhaul::testing {

inline std::filesystem::path test_directory() {
  const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string("longhaul_") + test.test_suite_name() + '_' + test.name() + '_' +
                     std::to_string(::getpid());
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return std::filesystem::path(::testing::TempDir()) / name;
}

}  // namespace longhaul::testing
