#include "longhaul/hub/status_pace.h"

#include <sstream>
#include <utility>

namespace longhaul {
namespace {

// The part of a status that an operator wants to hear of at once.
std::string news_of(const HubStatus& status) {
  std::ostringstream text;
  text << status.is_started << status.is_finished << ' ' << status.refused << ' '
       << status.strangers << ' ' << status.rejected << ' ' << status.mismatches;
  for (const auto& [name, replica] : status.replicas)
    text << ' ' << name << ' ' << replica.is_connected << replica.is_enrolled;
  return text.str();
}

}  // namespace

bool StatusPace::is_due(const HubStatus& status, TimePoint now) {
  const bool is_first = news_.empty();
  if (!is_first && now - printed_ < shortest()) return false;
  std::string news = news_of(status);
  const bool is_news = news != news_;
  if (!is_first && !is_news && now - printed_ < gap_) return false;
  gap_ = is_news ? shortest() : std::min(2 * gap_, longest_);
  printed_ = now;
  news_ = std::move(news);
  return true;
}

}  // namespace longhaul
