#include "longhaul/base/repeat_filter.h"

#include <utility>

namespace longhaul {
namespace {

constexpr Seconds kTellAgain{60.0};
constexpr std::size_t kMostKinds = 256;
constexpr const char* kTooMany = "more of all kinds than can be told apart";

}  // namespace

std::optional<std::string> RepeatFilter::line_for(const std::string& what, TimePoint now) {
  const std::string kind = kind_for(what, now);
  const std::optional<std::uint64_t> left_out = left_out_before(kind, 1, now);
  if (!left_out) return std::nullopt;
  if (*left_out == 0) return kind;
  return kind + " (" + std::to_string(*left_out + 1) + " more times)";
}

std::optional<std::string> RepeatFilter::line_of_kind(const std::string& kind,
                                                      const std::string& line, std::size_t most,
                                                      TimePoint now) {
  const std::optional<std::uint64_t> left_out = left_out_before(kind_for(kind, now), most, now);
  if (!left_out) return std::nullopt;
  if (*left_out == 0) return line;
  return line + " (" + std::to_string(*left_out) + " more like this before)";
}

// Whoever invents a new kind each time does not fill the log, nor the memory.
std::string RepeatFilter::kind_for(const std::string& what, TimePoint now) {
  if (kinds_.size() >= kMostKinds)
    std::erase_if(kinds_, [&](const auto& kind) { return now - kind.second.since >= kTellAgain; });
  return kinds_.size() >= kMostKinds && !kinds_.contains(what) ? kTooMany : what;
}

std::optional<std::uint64_t> RepeatFilter::left_out_before(const std::string& kind,
                                                           std::size_t most, TimePoint now) {
  Kind& known = kinds_.try_emplace(kind, Kind{.since = now}).first->second;
  if (now - known.since >= kTellAgain) {
    known.since = now;
    known.told = 0;
  }
  if (known.told < most) {
    ++known.told;
    return std::exchange(known.untold, 0);
  }
  ++known.untold;
  return std::nullopt;
}

}  // namespace longhaul
