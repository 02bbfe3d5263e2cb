#include "longhaul/rehearsal/faults.h"

#include <algorithm>
#include <array>

namespace longhaul {
namespace {

constexpr std::size_t kMostUnderWay = 2;
constexpr Seconds kFirstPause{2.0};
// Around the 5 s after which a silent peer counts as gone: some faults are over before anyone
// notices.
constexpr Seconds kLongest{8.0};
constexpr Seconds kLongestPause{4.0};
constexpr Seconds kNoticed{1.0};

// How often each kind comes. Replicas that are killed take seconds to come back.
constexpr std::array kKinds{
    FaultKind::kKillReplica, FaultKind::kKillReplica, FaultKind::kStopReplica,
    FaultKind::kStopReplica, FaultKind::kCutLink,     FaultKind::kCutLink,
    FaultKind::kDropLink,    FaultKind::kDropLink,    FaultKind::kKillHub,
};

}  // namespace

std::string text_of(const Fault& fault) {
  const std::string replica = "replica-" + std::to_string(fault.slot);
  switch (fault.kind) {
    case FaultKind::kKillReplica:
      return replica + " killed, back in " + to_string(fault.length);
    case FaultKind::kStopReplica:
      return replica + " stopped for " + to_string(fault.length);
    case FaultKind::kCutLink:
      return "link of " + replica + " cut for " + to_string(fault.length);
    case FaultKind::kDropLink:
      return "connections of " + replica + " reset";
    case FaultKind::kKillHub:
      return "hub killed, back in " + to_string(fault.length);
  }
  return {};
}

Faults::Faults(const FaultOptions& settings, std::size_t replicas)
    : settings_(settings), replicas_(replicas), random_(settings.seed) {
  next_ = draw();
  next_at_ = kFirstPause;
}

Fault Faults::draw() {
  const auto share = [this] { return static_cast<double>(random_() >> 11U) * 0x1p-53; };
  Fault fault{.kind = kKinds[random_() % kKinds.size()], .slot = random_() % replicas_};
  fault.pause = kLongestPause * share();
  fault.length = kLongest * share();
  if (fault.kind == FaultKind::kDropLink) fault.length = Seconds(0);
  return fault;
}

bool Faults::is_through(Seconds time) const {
  return is_stopped_ || (begun_ >= settings_.count && time >= settings_.duration);
}

bool Faults::is_over(Seconds time) const {
  return is_through(time) && under_way_.empty() && time >= last_end_ + kNoticed;
}

// One thing at a time for each replica; while the hub is away, nothing else happens to it.
bool Faults::is_free(const Fault& fault) const {
  if (under_way_.size() >= kMostUnderWay) return false;
  return std::ranges::none_of(under_way_, [&](const Fault& other) {
    const bool is_hub = fault.kind == FaultKind::kKillHub;
    const bool is_other_hub = other.kind == FaultKind::kKillHub;
    return is_hub || is_other_hub ? is_hub == is_other_hub : other.slot == fault.slot;
  });
}

Status Faults::on_tick(Seconds time, const Action& begin, const Action& end) {
  for (auto over = under_way_.begin(); over != under_way_.end();) {
    if (over->end > time) {
      ++over;
      continue;
    }
    const Fault fault = *over;
    over = under_way_.erase(over);
    last_end_ = time;
    LONGHAUL_TRY(end(fault));
  }
  if (is_through(time) || time < next_at_) return Done{};
  if (!is_free(next_)) return Done{};
  LONGHAUL_TRY(begin(next_));
  ++begun_;
  last_ = text_of(next_);
  next_.end = time + next_.length;
  under_way_.push_back(next_);
  next_ = draw();
  next_at_ = time + next_.pause;
  return Done{};
}

}  // namespace longhaul
