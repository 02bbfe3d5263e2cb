// What a subcommand gives to main: its options, and what to run once they are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace longhaul::apps {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitWrongUse = 2;

using Run = std::function<int()>;

void add_bench(CLI::App& program, Run& run);

}  // namespace longhaul::apps
