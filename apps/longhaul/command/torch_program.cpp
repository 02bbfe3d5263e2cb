#include "apps/longhaul/command/torch_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/longhaul/command/installed.h"
#include "longhaul/base/owned_fd.h"

namespace longhaul::apps {
namespace {

Error system_error(const std::string& what) {
  return Error{ErrorCode::kIo, what + ": " + std::strerror(errno)};
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

// Points into its arguments, which outlive it.
std::vector<char*> argv_of(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

Result<std::string> torch_program() {
  const std::filesystem::path path = program_directory() / "longhaul-torch";
  if (std::filesystem::exists(path)) return path.string();
  return Error{ErrorCode::kNotFound, "longhaul-torch is not installed beside longhaul"};
}

Result<pid_t> spawn(const std::string& path, const std::vector<std::string>& arguments,
                    int output) {
  const std::vector<char*> argv = argv_of(path, arguments);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int failure = posix_spawn(&child, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == 0) return child;
  errno = failure;
  return system_error(path);
}

}  // namespace

Result<std::string> run_torch_program(const std::vector<std::string>& arguments) {
  const std::string path = LONGHAUL_TRY(torch_program());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe");
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  const Result<pid_t> child = spawn(path, arguments, writing.get());
  writing = OwnedFd(-1);
  if (!child.ok()) return child.error();
  std::string output = read_all(reading.get());
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::kIo, "longhaul-torch " + arguments.front() + " failed"};
  }
  return output;
}

Error become_torch_program(const std::vector<std::string>& arguments) {
  const std::string path = LONGHAUL_TRY(torch_program());
  ::execv(path.c_str(), argv_of(path, arguments).data());
  return system_error(path);
}

}  // namespace longhaul::apps
