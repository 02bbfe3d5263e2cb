// The complaint of a command that cannot do its work: one line on standard error.
#pragma once

#include <iostream>
#include <string_view>

#include "apps/longhaul/command/command.h"
#include "longhaul/base/result.h"

namespace longhaul::apps {

// `command` is what stands behind "longhaul" on the command line. Returns the exit code.
inline int complain(std::string_view command, const Error& error, int exit_code) {
  std::cerr << "longhaul " << command << ": " << error.message << '\n';
  return exit_code;
}

// With the exit code that such an error has.
inline int complain(std::string_view command, const Error& error) {
  const bool is_wrong_use = error.code == ErrorCode::kInvalidArgument;
  return complain(command, error, is_wrong_use ? kExitWrongUse : kExitFailed);
}

}  // namespace longhaul::apps
