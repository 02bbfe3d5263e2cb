#include "longhaul/hub/repeat_filter.h"

namespace longhaul {
namespace {

constexpr Seconds kTellAgain{60.0};
constexpr std::size_t kMostKinds = 256;
constexpr const char* kTooMany = "more of all kinds than can be told apart";

}  // namespace

std::optional<std::string> RepeatFilter::line_for(const std::string& what, TimePoint now) {
  if (kinds_.size() >= kMostKinds) forget_old(now);
  // Whoever invents a new kind each time does not fill the log, nor the memory.
  const bool is_full = kinds_.size() >= kMostKinds && !kinds_.contains(what);
  const std::string key = is_full ? kTooMany : what;
  const auto [kind, is_new] = kinds_.try_emplace(key, Kind{.told = now});
  if (is_new) return key;
  ++kind->second.untold;
  if (now - kind->second.told < kTellAgain) return std::nullopt;
  const std::uint64_t times = kind->second.untold;
  kind->second = {.told = now};
  return key + " (" + std::to_string(times) + (times == 1 ? " more time)" : " more times)");
}

void RepeatFilter::forget_old(TimePoint now) {
  std::erase_if(kinds_, [&](const auto& kind) { return now - kind.second.told >= kTellAgain; });
}

}  // namespace longhaul
