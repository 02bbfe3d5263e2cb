// Completion scripts. bash and zsh share their body: where in the tree the line is, what follows.
#include <algorithm>

#include "apps/longhaul/manual/command_pages.h"

namespace longhaul::apps {
namespace {

std::string spaced(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// In single quotes; `quote` is how the shell writes one inside them.
std::string in_quotes(const std::string& text, const std::string& quote) {
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? quote : std::string(1, letter);
  return quoted + '\'';
}
std::string for_sh(const std::string& text) { return in_quotes(text, R"('\'')"); }
std::string for_fish(const std::string& text) { return in_quotes(text, R"(\')"); }

const std::vector<std::string>& choices_for(const CommandOption& option, const Choices& choices) {
  static const std::vector<std::string> kNone;
  const std::size_t letter = option.name.find_first_not_of('-');
  const auto found = choices.find(option.name.substr(letter == std::string::npos ? 0 : letter));
  return found == choices.end() ? kNone : found->second;
}

// Lists the words that may follow a command: subcommands, options, values of its arguments.
std::vector<std::string> words_after(const CommandPage& page, const Choices& choices) {
  std::vector<std::string> words = page.commands;
  for (const CommandOption& option : page.options) {
    if (!option.is_argument) words.push_back(option.name);
    const std::vector<std::string>& values = choices_for(option, choices);
    if (option.is_argument) words.insert(words.end(), values.begin(), values.end());
  }
  return words;
}

// Sets `command` from the words `before` the current one, and `offer` to what may come now. Returns
// early behind an option whose value is the user's.
std::string shell_body(const std::vector<CommandPage>& pages, const Choices& choices) {
  std::string walk;
  std::string values;
  std::string offers;
  for (const CommandPage& page : pages) {
    if (!page.path.empty())
      walk += "      " + for_sh(page.parent() + '/' + page.name()) +
              ") command=" + for_sh(page.path) + " ;;\n";
    for (const CommandOption& option : page.options) {
      if (option.is_argument || option.value.empty()) continue;
      values += "    " + for_sh(page.path + ' ' + option.name) +
                ") offer=" + for_sh(spaced(choices_for(option, choices))) + "; is_value=1 ;;\n";
    }
    offers += "      " + for_sh(page.path) +
              ") offer=" + for_sh(spaced(words_after(page, choices))) + " ;;\n";
  }
  return "  local command='' offer='' is_value='' word\n"
         "  for word in \"${before[@]}\"; do\n"
         "    case \"$command/$word\" in\n" +
         walk +
         "    esac\n"
         "  done\n"
         "  case \"$command $previous\" in\n" +
         values +
         "  esac\n"
         "  if [[ -z $is_value ]]; then\n"
         "    case \"$command\" in\n" +
         offers +
         "    esac\n"
         "  fi\n";
}

std::string bash_script(const std::vector<CommandPage>& pages, const Choices& choices) {
  return "# Completion of longhaul for bash, made by `longhaul completion bash`.\n"
         "_longhaul() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  local before=(\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n" +
         shell_body(pages, choices) +
         "  COMPREPLY=($(compgen -W \"$offer\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _longhaul longhaul\n";
}

std::string zsh_script(const std::vector<CommandPage>& pages, const Choices& choices) {
  return "#compdef longhaul\n"
         "# Completion of longhaul for zsh, made by `longhaul completion zsh`.\n"
         "_longhaul() {\n"
         "  local current=\"${words[CURRENT]}\" previous=\"${words[CURRENT-1]}\"\n"
         "  local -a before=(\"${(@)words[2,CURRENT-1]}\")\n" +
         shell_body(pages, choices) +
         "  [[ -n $offer ]] && compadd -- ${=offer}\n"
         "  [[ -n $command && $current != -* ]] && _files\n"
         "}\n"
         "# From a directory of $fpath this file is the function itself; else it was sourced.\n"
         "if [[ ${funcstack[1]} == _longhaul ]]; then\n"
         "  _longhaul \"$@\"\n"
         "else\n"
         "  compdef _longhaul longhaul\n"
         "fi\n";
}

// A fish condition: the line is at this command, and at none of those below it.
std::string fish_condition(const CommandPage& page) {
  std::string condition = page.path.empty() ? "__fish_use_subcommand" : "";
  for (std::size_t at = 0; at < page.path.size();) {
    const std::size_t end = std::min(page.path.find(' ', at), page.path.size());
    condition += (condition.empty() ? "" : "; and ") +
                 ("__fish_seen_subcommand_from " + page.path.substr(at, end - at));
    at = end + 1;
  }
  if (page.path.empty() || page.commands.empty()) return condition;
  return condition + "; and not __fish_seen_subcommand_from " + spaced(page.commands);
}

std::string fish_script(const std::vector<CommandPage>& pages, const Choices& choices) {
  std::string script = "# Completion of longhaul for fish, made by `longhaul completion fish`.\n";
  for (const CommandPage& page : pages) {
    const std::string here = "complete -c longhaul -n " + for_fish(fish_condition(page));
    for (const CommandPage& below : pages) {
      if (!below.path.empty() && below.parent() == page.path)
        script += here + " -f -a " + below.name() + " -d " + for_fish(below.summary) + '\n';
    }
    for (const CommandOption& option : page.options) {
      const std::string values = spaced(choices_for(option, choices));
      if (option.is_argument && !values.empty()) script += here + " -a " + for_fish(values) + '\n';
      if (option.is_argument) continue;
      script += here + " -l " + option.name.substr(2) +
                (option.value.empty() ? ""
                 : values.empty()     ? " -r"
                                      : " -x -a " + for_fish(values)) +
                " -d " + for_fish(option.help) + '\n';
    }
  }
  return script;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandPage>& pages,
                              const Choices& choices) {
  if (shell == "fish") return fish_script(pages, choices);
  return shell == "zsh" ? zsh_script(pages, choices) : bash_script(pages, choices);
}

}  // namespace longhaul::apps
