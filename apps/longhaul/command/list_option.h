// Options that are given once for each value, such as --set.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace longhaul::apps {

// `values` outlives the parsing.
inline CLI::Option* add_list(CLI::App& command, const std::string& option,
                             std::vector<std::string>& values, const std::string& help) {
  return command.add_option(option, values, help)->expected(1)->allow_extra_args(false)->take_all();
}

// --set, with its usual help.
inline CLI::Option* add_settings(
    CLI::App& command, std::vector<std::string>& settings,
    const std::string& help = "Override a key of the scenario: table.key=value; repeatable") {
  return add_list(command, "--set", settings, help);
}

}  // namespace longhaul::apps
