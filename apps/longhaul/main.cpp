// The longhaul program: parses the command line, runs one subcommand, and turns failures into one
// line and an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "apps/longhaul/command/command.h"
#include "longhaul/base/text.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul::apps {
namespace {

// As they are written: --recipe, --json.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "--recipes=auto" and "-recipes" both mean --recipes.
std::string option_name(const std::string& written) {
  const std::string name = written.substr(0, written.find('='));
  return "--" + name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// One line. A mistyped subcommand is named: CLI11 would only say that one is required.
std::string failure_text(const CLI::App* app, const CLI::Error& error) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  std::string what = error.what();
  const std::vector<std::string> unknown = app->remaining();
  const auto option =
      std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-'); });
  const auto known = app->get_subcommands([](const CLI::App*) { return true; });
  // The options of a mistyped command are unknown too: the first unknown word is the mistake.
  if (!known.empty() && option != unknown.begin()) {
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const CLI::App* subcommand : known) names.push_back(subcommand->get_name());
    what = "expected a subcommand (" + joined(names) + "), got " + unknown.front() +
           did_you_mean(unknown.front(), names);
  } else if (option != unknown.end()) {
    what = "unknown option " + *option + did_you_mean(option_name(*option), option_names(*app));
  }
  std::string name = app->get_name();
  for (const CLI::App* above = app->get_parent(); above != nullptr; above = above->get_parent())
    name.insert(0, above->get_name() + ' ');
  return name + ": " + what + " (try --help)\n";
}

int run_program(int argc, char** argv) {
  CLI::App program{"Longhaul trains one model on machines that are far apart."};
  program.name("longhaul");
  program.require_subcommand(1);
  program.set_version_flag("--version", "longhaul " LONGHAUL_VERSION ", wire version " +
                                            std::to_string(kWireVersion) + ", protocol version " +
                                            std::to_string(kProtocolVersion));
  program.failure_message(failure_text);
  program.footer(
      "`longhaul help COMMAND` explains a command, with examples. To begin: `longhaul rehearse`\n"
      "runs a hub and its replicas on this machine, `longhaul plan` says what your link allows.");
  Run run;
  // In the order in which a newcomer meets them: help lists them so.
  const std::vector<std::string> words(argv + 1, argv + argc);
  add_plan(program, run);
  add_profile(program, run, words);
  add_lab(program, run, words);
  add_rehearse(program, run);
  add_catalogue(program, run);
  add_hub(program, run);
  add_train(program, run, words);
  add_status(program, run);
  add_probe(program, run);
  add_export(program, run);
  add_evaluate(program, run, words);
  add_keys(program, run);
  add_bench(program, run);
  add_manual(program, run);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? kExitDone : kExitWrongUse;
  }
  return run();
}

}  // namespace
}  // namespace longhaul::apps

int main(int argc, char** argv) {
  try {
    return longhaul::apps::run_program(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "longhaul: " << error.what() << '\n';
    return longhaul::kExitFailed;
  }
}
