#include "apps/longhaul/plan/plan_rows.h"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <utility>

#include "longhaul/base/units.h"

namespace longhaul::apps {
namespace {

constexpr std::size_t kNameWidth = 12;

}  // namespace

std::string row(const std::string& name, const std::string& value) {
  const std::size_t gap = name.size() < kNameWidth ? kNameWidth - name.size() : 0;
  return name + std::string(gap + 1, ' ') + value + '\n';
}

std::string paragraph(std::string name, const std::string& text) {
  constexpr std::size_t kWidth = 87;  // beside the names
  std::istringstream words(text);
  std::string rows;
  std::string line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      rows += row(std::exchange(name, ""), line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return rows + row(name, line);
}

std::string size_text(double bytes) {
  return bytes_text(static_cast<std::uint64_t>(std::llround(bytes)));
}

}  // namespace longhaul::apps
