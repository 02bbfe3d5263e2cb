#include "apps/longhaul_torch/await_hub.h"

#include <algorithm>

#include "longhaul/exchange/ask.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/pacer.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kAskTimeout{30.0};
constexpr Seconds kFirstPause{0.3};
constexpr Seconds kMostPause{10.0};
constexpr Seconds kLook{0.1};  // between looks at Ctrl-C
constexpr Seconds kTellAgain{300.0};
// A hub that starts or ends may look for a moment like someone else.
constexpr Seconds kDoubt{3.0};
constexpr Seconds kForever{1e9};

bool is_away(const Error& error) {
  return error.code == ErrorCode::kClosed || error.code == ErrorCode::kDeadline;
}

void pause_for(Seconds time, const Clock& clock) {
  Pacer pacer;
  const Deadline end = time_after(clock.now(), time);
  while (clock.now() < end && !is_interrupted())
    pacer.wait_until(std::min(end, time_after(clock.now(), kLook)));
}

}  // namespace

Result<v1::Task> await_task(Connector& connector, const HubAccess& access,
                            std::optional<Seconds> longest, const Log& log) {
  const Clock clock;
  const Seconds limit = longest.value_or(kForever);
  const TimePoint start = clock.now();
  TimePoint in_doubt_since = start;
  std::optional<TimePoint> told;
  for (Seconds next = kFirstPause;; next = std::min(2 * next, kMostPause)) {
    Result<v1::Task> task = ask_for_task(connector, access.name, access.token,
                                         deadline_after(kAskTimeout), is_interrupted);
    if (task.ok() || is_interrupted()) return task;
    const TimePoint now = clock.now();
    const Error& error = task.error();
    if (is_away(error)) {
      in_doubt_since = now;
    } else if (error.code != ErrorCode::kNotFound || now - in_doubt_since >= kDoubt) {
      return task;
    }
    const Seconds left = limit - Seconds(now - start);
    if (left.count() <= 0) return task;
    if (is_away(error) && (!told || now - *told >= kTellAgain)) {
      log.warning(error.message + "; trying again until it does, Ctrl-C ends");
      told = now;
    }
    pause_for(std::min(next, left), clock);
  }
}

}  // namespace longhaul::apps
