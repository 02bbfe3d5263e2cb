#include "longhaul/base/text.h"

#include <algorithm>

namespace longhaul {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

bool is_near(std::size_t distance, std::string_view written) {
  return distance <= std::max<std::size_t>(1, written.size() / 3);
}

std::string nearest_name(std::string_view written, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 100;  // nobody mistypes a longer name; the distance costs a × b
  constexpr std::size_t kLeastBeginning = 2;
  if (written.empty() || written.size() > kLongest) return "";
  const std::string lower = lower_case(written);
  const std::string* best = nullptr;
  std::size_t least = 0;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(lower, lower_case(name));
    if (!is_near(distance, lower) || (best != nullptr && distance >= least)) continue;
    best = &name;
    least = distance;
  }
  if (best != nullptr) return *best;
  const auto begins_so = [&](const std::string& name) {
    return lower_case(name).starts_with(lower);
  };
  if (lower.size() < kLeastBeginning || std::ranges::count_if(names, begins_so) != 1) return "";
  return *std::ranges::find_if(names, begins_so);
}

std::string did_you_mean(std::string_view written, const std::vector<std::string>& names) {
  const std::string name = nearest_name(written, names);
  return name.empty() ? "" : "; did you mean " + name + '?';
}

}  // namespace longhaul
