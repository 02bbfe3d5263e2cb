#include "longhaul/round/plan.h"

#include <algorithm>
#include <array>

namespace longhaul {
namespace {

struct NamedMerge {
  Merge merge;
  std::string_view name;
};

constexpr std::array kMerges{
    NamedMerge{Merge::kOptimizer, "optimizer"}, NamedMerge{Merge::kOwnStep, "own-step"},
    NamedMerge{Merge::kLate, "late"},           NamedMerge{Merge::kAhead, "ahead"},
    NamedMerge{Merge::kOuter, "outer"},         NamedMerge{Merge::kAnchor, "anchor"}};

}  // namespace

std::string_view name_of(Merge merge) {
  return std::ranges::find(kMerges, merge, &NamedMerge::merge)->name;
}

std::vector<std::string> merge_names() {
  std::vector<std::string> names;
  names.reserve(kMerges.size());
  for (const NamedMerge& row : kMerges) names.emplace_back(row.name);
  return names;
}

Result<Merge> parse_merge(std::string_view name) {
  const auto* const row = std::ranges::find(kMerges, name, &NamedMerge::name);
  if (row == kMerges.end())
    return Error{ErrorCode::kInvalidArgument, "no merge rule " + std::string(name)};
  return row->merge;
}

}  // namespace longhaul
