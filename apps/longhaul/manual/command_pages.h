// The command line as plain data, read once from CLI11's tree. Shell completion and man pages are
// printed from it, so they cannot differ from what the program takes.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace longhaul::apps {

// One option or argument of a command.
struct CommandOption {
  std::string name;   // "--recipe"; of an argument, "scenario"
  std::string value;  // "TEXT"; empty: a flag
  std::string help;
  std::string fallback;  // the default; empty: none is printed
  bool is_argument = false;
  bool is_required = false;
};

// The program, one of its commands, or a command of a command.
struct CommandPage {
  std::string path;  // behind "longhaul": "", "plan", "keys invite"
  std::string summary;
  std::string footer;
  std::vector<CommandOption> options;
  std::vector<std::string> commands;  // names, as they stand behind the path

  [[nodiscard]] std::string name() const { return path.substr(path.rfind(' ') + 1); }
  [[nodiscard]] std::string parent() const {  // the path above
    const std::size_t space = path.rfind(' ');
    return space == std::string::npos ? "" : path.substr(0, space);
  }
};

// The program first, then each command before its own commands. Hidden options are left out.
std::vector<CommandPage> command_pages(const CLI::App& program);

// Words that a shell offers, by the name of an option or argument without its dashes: "recipe".
using Choices = std::map<std::string, std::vector<std::string>>;

// Source text for `shell`, which is one of kShells.
inline const std::vector<std::string> kShells{"bash", "zsh", "fish"};
std::string completion_script(const std::string& shell, const std::vector<CommandPage>& pages,
                              const Choices& choices);

// The manual in roff: of the program with all its commands, or of one command with those below it.
std::string man_page(const std::vector<CommandPage>& pages, const std::string& path,
                     const std::string& version);

}  // namespace longhaul::apps
