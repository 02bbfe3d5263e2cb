// Text as people write it: lists with commas, and names with a slip in them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// ASCII only; the locale has no say.
std::string lower_case(std::string_view text);

// The parts of "a, b,c" without the spaces around them. Empty text has no parts.
std::vector<std::string> split_list(std::string_view text);
// "a, b, c".
std::string joined(const std::vector<std::string>& names);

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);
// Is a name at this distance a likely slip for `written`? Beyond a third of the letters a
// suggestion is a guess.
bool is_near(std::size_t distance, std::string_view written);

// The name that was probably meant, whatever its case: a near one, or the only one that begins so.
// Empty: none is likely.
std::string nearest_name(std::string_view written, const std::vector<std::string>& names);
// "; did you mean lab?", or nothing.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& names);

}  // namespace longhaul
