// The manual in roff, for `man -l`.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "apps/longhaul/manual/command_pages.h"

namespace longhaul::apps {
namespace {

constexpr const char* kExitCodes =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nDone.\n"
    ".TP\n.B 1\nIt failed: a file, the network or a process.\n"
    ".TP\n.B 2\nWrong use; one line on standard error says what was expected.\n"
    ".TP\n.B 75\nThe hub stopped the run before its end; it can be resumed.\n"
    ".TP\n.B 130\nInterrupted by Ctrl\\-C or SIGTERM.\n";

// One character beyond ASCII, read from UTF-8, as roff names it: \[u2026].
std::string named_character(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  auto code = static_cast<std::uint32_t>(lead & (0x3FU >> more));
  for (std::size_t i = 0; i < more && at + 1 < text.size(); ++i)
    code = (code << 6U) | (static_cast<unsigned char>(text[++at]) & 0x3FU);
  std::array<char, 16> name{};
  (void)std::snprintf(name.data(), name.size(), "\\[u%04X]", code);
  return name.data();
}

std::string roff(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool starts_line = at == 0 || text[at - 1] == '\n';
    if (starts_line && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (static_cast<unsigned char>(letter) >= 0x80) {
      escaped += named_character(text, at);
    } else if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string full_name(const CommandPage& page) {
  return page.path.empty() ? "longhaul" : "longhaul " + page.path;
}

std::string synopsis(const CommandPage& page) {
  std::string text = ".B " + roff(full_name(page)) + "\n[\\fIOPTIONS\\fR]\n";
  for (const CommandOption& option : page.options) {
    if (!option.is_argument) continue;
    const std::string name = "\\fI" + roff(option.name) + "\\fR";
    text += (option.is_required ? name : '[' + name + ']') + '\n';
  }
  return page.commands.empty() ? text : text + "\\fICOMMAND\\fR\n";
}

std::string option_text(const CommandOption& option) {
  std::string text = ".TP\n\\fB" + roff(option.name) + "\\fR";
  if (!option.is_argument && !option.value.empty()) text += " \\fI" + roff(option.value) + "\\fR";
  text += '\n' + roff(option.help);
  if (!option.fallback.empty()) text += " (default: " + roff(option.fallback) + ')';
  if (option.is_required) text += " (required)";
  return text + '\n';
}

// Options, and the footer as it stands.
std::string body(const CommandPage& page) {
  std::string text;
  for (const CommandOption& option : page.options) text += option_text(option);
  if (!page.footer.empty()) text += ".PP\n.nf\n" + roff(page.footer) + "\n.fi\n";
  return text;
}

std::string title_of(const std::string& path) {
  std::string title = path.empty() ? "LONGHAUL" : "LONGHAUL-" + path;
  for (char& letter : title) {
    if (letter == ' ') letter = '-';
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return title;
}

}  // namespace

std::string man_page(const std::vector<CommandPage>& pages, const std::string& path,
                     const std::string& version) {
  std::string text;
  for (const CommandPage& page : pages) {
    const bool is_below = path.empty() || page.path == path || page.path.starts_with(path + ' ');
    if (!is_below) continue;
    if (page.path != path) {
      text += ".SS " + roff(full_name(page)) + '\n' + roff(page.summary) + "\n.PP\n" +
              synopsis(page) + body(page);
      continue;
    }
    text += ".TH \"" + roff(title_of(path)) + R"(" 1 "" "longhaul )" + roff(version) +
            "\" \"User Commands\"\n.SH NAME\n" + roff(full_name(page)) + " \\- " +
            roff(page.summary) + "\n.SH SYNOPSIS\n" + synopsis(page) + ".SH OPTIONS\n" + body(page);
    if (!page.commands.empty()) text += ".SH COMMANDS\n";
  }
  return text + kExitCodes;
}

}  // namespace longhaul::apps
