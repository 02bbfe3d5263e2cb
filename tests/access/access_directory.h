// What the tests of access share: a directory of their own, a time, and the keys of a hub.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "longhaul/access/authority.h"
#include "longhaul/access/invite.h"

namespace longhaul::access {

inline constexpr WallTime kToday{std::chrono::sys_days{std::chrono::year{2026} / 7 / 1}};

inline unsigned mode_of(const std::filesystem::path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777U : 0U;
}

// An empty directory that ends with its test.
class AccessTest : public testing::Test {
 protected:
  AccessTest() {
    // In memory where there is such a place: keys are synced to disk, which takes its time.
    const bool is_in_memory = std::filesystem::is_directory("/dev/shm");
    std::string pattern =
        (is_in_memory ? "/dev/shm/" : testing::TempDir()) + "longhaul_access_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no directory for tests");
    directory_ = pattern;
  }
  ~AccessTest() override { std::filesystem::remove_all(directory_); }

  // The keys of a hub that is called `name`, in a directory of their own.
  [[nodiscard]] std::filesystem::path hub(const std::string& name) const {
    const Result<CertificateFacts> made =
        create_authority(directory_ / name, {"hub.example.org", "192.0.2.7"}, kToday);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return directory_ / name;
  }

  [[nodiscard]] InviteOptions request(const std::string& name) const {
    return {
        .name = name, .address = "hub.example.org:4242", .file = directory_ / (name + ".invite")};
  }

  [[nodiscard]] Invite invited(const std::filesystem::path& hub, const std::string& name) const {
    const Result<Invited> done = invite(hub, request(name), kToday);
    EXPECT_TRUE(done.ok()) << done.error().message;
    Result<Invite> invite = read_invite(directory_ / (name + ".invite"), kToday);
    EXPECT_TRUE(invite.ok()) << invite.error().message;
    return invite.ok() ? *invite : Invite{};
  }

  std::filesystem::path directory_;
};

}  // namespace longhaul::access
