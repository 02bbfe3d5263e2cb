// A process of our own: its output read line by line, and its end certain, whatever happens to us.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/owned_fd.h"
#include "longhaul/base/result.h"

namespace longhaul {

class Child {
 public:
  // Runs a command: the program, then its arguments. Its standard error goes to the file `errors`.
  // It dies with this process, also when that is killed.
  static Result<Child> start(const std::vector<std::string>& command, const std::string& errors);
  // The same for a process that serves the others: it runs when they do not, and write_line()
  // reaches its standard input.
  static Result<Child> start_helper(const std::vector<std::string>& command,
                                    const std::string& errors);
  // Killed and waited for, if it has not ended.
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // For poll(); -1 once all has been read.
  [[nodiscard]] int output() const { return output_.get(); }
  // The lines that have come; never blocks.
  std::vector<std::string> read_lines();
  void write_line(const std::string& line);
  void close_input();

  void signal(int number) const;
  // SIGKILL, and it is gone when this returns; what it has written can still be read.
  void kill();
  // Its exit code once it has ended; 128 + n if signal n ended it. Never blocks.
  std::optional<int> exit_code();

 private:
  static Result<Child> start(const std::vector<std::string>& command, const std::string& errors,
                             bool is_helper);
  Child(pid_t id, OwnedFd output, OwnedFd input)
      : id_(id), output_(std::move(output)), input_(std::move(input)) {}

  pid_t id_ = -1;
  OwnedFd output_;
  OwnedFd input_;
  std::string partial_;
  std::optional<int> exit_code_;
};

}  // namespace longhaul
