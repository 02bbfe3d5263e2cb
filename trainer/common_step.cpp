#include "trainer/common_step.h"

#include <algorithm>
#include <string>

namespace longhaul::trainer {

// A rank writes its second checkpoint only when all have their first: where one has two and
// another has neither, a file was lost.
Result<std::uint64_t> newest_common_step(const std::vector<std::vector<std::uint64_t>>& steps) {
  std::vector<std::uint64_t> common = steps.front();
  for (const std::vector<std::uint64_t>& one : steps)
    std::erase_if(common, [&](auto step) { return std::ranges::find(one, step) == one.end(); });
  if (!common.empty()) return std::ranges::max(common);
  if (std::ranges::all_of(steps, [](const auto& one) { return one.size() < 2; }))
    return std::uint64_t{0};
  std::string text = "no step of which all ranks have a checkpoint;";
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    text += " rank " + std::to_string(rank) + " has";
    for (const std::uint64_t step : steps[rank]) text += ' ' + std::to_string(step);
    text += steps[rank].empty() ? " none," : ",";
  }
  text.back() = '.';
  return Error{ErrorCode::kNotFound,
               text + " Put their files back, or start again without --resume"};
}

}  // namespace longhaul::trainer
