// Runs longhaul-torch, the program that links libtorch and lies beside this one.
#pragma once

#include <string>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul::apps {

// Its standard output; its standard error goes where ours goes. An error when it is not installed
// or does not exit with 0.
Result<std::string> run_torch_program(const std::vector<std::string>& arguments);

// Goes on as longhaul-torch, with these arguments: returns only when that fails, and says why.
Error become_torch_program(const std::vector<std::string>& arguments);

}  // namespace longhaul::apps
