#include "longhaul/rehearsal/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace longhaul {
namespace {

constexpr int kNicest = 19;

// To read from, and to write to.
Result<std::pair<OwnedFd, OwnedFd>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{ErrorCode::kIo, std::string("pipe: ") + std::strerror(errno)};
  return std::pair(OwnedFd(ends[0]), OwnedFd(ends[1]));
}

// Between fork and exec: only what is safe there. `files` are standard input, output and error; the
// last may be -1: as the parent's.
[[noreturn]] void become(char* const* argv, const std::array<int, 3>& files, int niceness,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  ::setpgid(0, 0);                          // Ctrl-C goes to the parent alone, which decides
  if (niceness > 0 && ::nice(niceness) == -1) {
  }
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int file = files[static_cast<std::size_t>(standard)];
    if (file >= 0) ::dup2(file, standard);
  }
  ::close_range(STDERR_FILENO + 1, ~0U, 0);  // sockets of relays among them
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(argv[0], argv);
  ::_exit(127);
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command, const std::string& errors) {
  return start(command, errors, false);
}

Result<Child> Child::start_helper(const std::vector<std::string>& command,
                                  const std::string& errors) {
  return start(command, errors, true);
}

Result<Child> Child::start(const std::vector<std::string>& command, const std::string& errors,
                           bool is_helper) {
  auto [output, told] = LONGHAUL_TRY(make_pipe());
  auto [heard, input] = LONGHAUL_TRY(make_pipe());
  OwnedFd error_file(errors.empty()
                         ? -1
                         : ::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id == 0)
    become(argv.data(), {heard.get(), told.get(), error_file.get()}, is_helper ? kNicest : 0,
           parent);
  if (id < 0) return Error{ErrorCode::kIo, std::string("fork: ") + std::strerror(errno)};
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  return Child(id, std::move(output), is_helper ? std::move(input) : OwnedFd(-1));
}

Child::Child(Child&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      output_(std::move(other.output_)),
      input_(std::move(other.input_)),
      partial_(std::move(other.partial_)),
      exit_code_(other.exit_code_) {}

Child::~Child() { kill(); }

void Child::kill() {
  if (id_ <= 0 || exit_code()) return;
  ::kill(id_, SIGKILL);
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  exit_code_ = 128 + SIGKILL;
}

std::vector<std::string> Child::read_lines() {
  std::vector<std::string> lines;
  std::array<char, 65536> part;
  while (output_.is_open()) {
    const ssize_t got = ::read(output_.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      output_ = OwnedFd(-1);
      break;
    }
    partial_.append(part.data(), static_cast<std::size_t>(got));
  }
  std::size_t begin = 0;
  for (std::size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', begin)) {
    lines.push_back(partial_.substr(begin, end - begin));
    begin = end + 1;
  }
  partial_.erase(0, begin);
  return lines;
}

void Child::write_line(const std::string& line) {
  const std::string text = line + '\n';
  std::size_t written = 0;
  while (input_.is_open() && written < text.size()) {
    const ssize_t put = ::write(input_.get(), text.data() + written, text.size() - written);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return close_input();
    written += static_cast<std::size_t>(put);
  }
}

void Child::close_input() { input_ = OwnedFd(-1); }

void Child::signal(int number) const {
  if (id_ > 0 && !exit_code_) ::kill(id_, number);
}

std::optional<int> Child::exit_code() {
  if (exit_code_ || id_ <= 0) return exit_code_;
  int status = 0;
  if (::waitpid(id_, &status, WNOHANG) != id_) return std::nullopt;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

}  // namespace longhaul
