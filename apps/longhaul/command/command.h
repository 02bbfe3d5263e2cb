// A subcommand as main sees it: its options, and a function to run once they are parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "longhaul/session/exit_code.h"

namespace longhaul::apps {

using Run = std::function<int()>;

void add_bench(CLI::App& program, Run& run);
void add_catalogue(CLI::App& program, Run& run);  // scenarios, recipes
void add_export(CLI::App& program, Run& run);
void add_hub(CLI::App& program, Run& run);
void add_keys(CLI::App& program, Run& run);
void add_manual(CLI::App& program, Run& run);  // help, man, completion
void add_rehearse(CLI::App& program, Run& run);
void add_plan(CLI::App& program, Run& run);
void add_probe(CLI::App& program, Run& run);
void add_status(CLI::App& program, Run& run);
// `words` are all arguments of the program, as they were written.
void add_train(CLI::App& program, Run& run, const std::vector<std::string>& words);
void add_lab(CLI::App& program, Run& run, const std::vector<std::string>& words);
void add_profile(CLI::App& program, Run& run, const std::vector<std::string>& words);
void add_evaluate(CLI::App& program, Run& run, const std::vector<std::string>& words);

}  // namespace longhaul::apps
