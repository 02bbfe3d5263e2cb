// longhaul help, longhaul man and longhaul completion: the command line describes itself.
#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/manual/command_pages.h"
#include "longhaul/base/text.h"
#include "longhaul/job/scenario.h"
#include "longhaul/plan/builtin_profiles.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::apps {
namespace {

// The command that stands behind "longhaul", such as {"keys", "invite"}; the program for no words.
Result<const CLI::App*> find_command(const CLI::App& program,
                                     const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* below : app->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(below->get_name());
      if (below->get_name() == word) next = below;
    }
    if (next == nullptr)
      return Error{ErrorCode::kInvalidArgument,
                   "no command is called " + word + did_you_mean(word, names) +
                       (names.empty() ? "" : " (" + joined(names) + ')')};
    app = next;
  }
  return app;
}

int run_help(const CLI::App& program, const std::vector<std::string>& words) {
  const Result<const CLI::App*> command = find_command(program, words);
  if (!command.ok()) return complain("help", command.error());
  if (*command == &program) {
    // Its help would delegate to the command that was parsed, which is `help`.
    std::cout << program.get_formatter()->make_help(&program, "longhaul",
                                                    CLI::AppFormatMode::Normal);
    return kExitDone;
  }
  std::string above = "longhaul";
  for (std::size_t i = 0; i + 1 < words.size(); ++i) above += ' ' + words[i];
  std::cout << (*command)->help(above);
  return kExitDone;
}

int run_man(const CLI::App& program, const std::vector<std::string>& words) {
  const Result<const CLI::App*> command = find_command(program, words);
  if (!command.ok()) return complain("man", command.error());
  std::string path;
  for (const std::string& word : words) path += (path.empty() ? "" : " ") + word;
  std::cout << man_page(command_pages(program), path, LONGHAUL_VERSION);
  return kExitDone;
}

Choices choices_of(const std::vector<CommandPage>& pages) {
  Choices choices{{"scenario", built_in_scenarios(catalogue())},
                  {"profile", builtin_profile_names()},
                  {"layers", {"whole", "cut"}},
                  {"shell", kShells},
                  {"command", pages.front().commands}};
  for (const Recipe& recipe : all_recipes()) choices["recipe"].emplace_back(recipe.name);
  return choices;
}

int run_completion(const CLI::App& program, const std::string& shell) {
  if (std::ranges::find(kShells, shell) == kShells.end())
    return complain("completion",
                    {ErrorCode::kInvalidArgument, "expected one of " + joined(kShells) + ", got " +
                                                      shell + did_you_mean(shell, kShells)});
  const std::vector<CommandPage> pages = command_pages(program);
  std::cout << completion_script(shell, pages, choices_of(pages));
  return kExitDone;
}

}  // namespace

void add_manual(CLI::App& program, Run& run) {
  const auto words = std::make_shared<std::vector<std::string>>();  // shared with the callbacks
  const auto shell = std::make_shared<std::string>();
  CLI::App* help = program.add_subcommand("help", "Show the help of a command");
  help->add_option("command", *words, "A command, such as plan or keys invite");
  help->callback(
      [=, &program, &run] { run = [=, &program] { return run_help(program, *words); }; });
  CLI::App* man = program.add_subcommand("man", "Print the manual as a man page");
  man->add_option("command", *words, "A command, such as plan (default: all of them)");
  man->footer("Example:\n  longhaul man plan | man -l -");
  man->callback([=, &program, &run] { run = [=, &program] { return run_man(program, *words); }; });
  CLI::App* completion =
      program.add_subcommand("completion", "Print a script that completes commands in a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")->required();
  completion->footer(
      "Examples:\n"
      "  source <(longhaul completion bash)          # in ~/.bashrc\n"
      "  longhaul completion zsh > ~/.zfunc/_longhaul\n"
      "  longhaul completion fish > ~/.config/fish/completions/longhaul.fish");
  completion->callback(
      [=, &program, &run] { run = [=, &program] { return run_completion(program, *shell); }; });
}

}  // namespace longhaul::apps
