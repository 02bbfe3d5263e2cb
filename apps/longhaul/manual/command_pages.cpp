#include "apps/longhaul/manual/command_pages.h"

namespace longhaul::apps {
namespace {

CommandOption option_of(const CLI::Option& option) {
  CommandOption described{.help = option.get_description(),
                          .fallback = option.get_default_str(),
                          .is_argument = option.get_positional(),
                          .is_required = option.get_required()};
  described.name =
      described.is_argument ? option.get_name(true) : "--" + option.get_lnames().front();
  if (option.get_items_expected_max() > 0) described.value = option.get_type_name();
  if (described.value.empty() && option.get_items_expected_max() > 0) described.value = "VALUE";
  return described;
}

void add_pages(const CLI::App& app, const std::string& path, std::vector<CommandPage>& pages) {
  CommandPage page{.path = path, .summary = app.get_description(), .footer = app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    const bool is_named = option->get_positional() || !option->get_lnames().empty();
    if (!option->get_group().empty() && is_named) page.options.push_back(option_of(*option));
  }
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) page.commands.push_back(command->get_name());
  pages.push_back(std::move(page));
  for (const CLI::App* command : commands)
    add_pages(*command, path.empty() ? command->get_name() : path + ' ' + command->get_name(),
              pages);
}

}  // namespace

std::vector<CommandPage> command_pages(const CLI::App& program) {
  std::vector<CommandPage> pages;
  add_pages(program, "", pages);
  return pages;
}

}  // namespace longhaul::apps
