#include "longhaul/sync/scorer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr int kLowestPriority = 19;

// On Linux a nice value belongs to a thread. Failure only costs speed.
void yield_to_training() {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
}

}  // namespace

Scorer::Scorer(Workload& workload, std::size_t samples)
    : workload_(workload), samples_(samples), thread_([this] { run(); }) {}

void Scorer::run() {
  yield_to_training();
  while (const auto copy = copies_.pop()) {
    const auto& [step, parameters] = *copy;
    const Score score{.step = step, .evaluation = workload_.evaluate(parameters, samples_)};
    const MutexLock lock(mutex_);
    score_ = score;
    is_busy_ = false;
  }
}

void Scorer::offer(std::uint64_t step, std::span<const float> shared) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(is_busy_, true)) return;
  }
  LONGHAUL_CHECK(copies_.try_push({step, {shared.begin(), shared.end()}}));
}

std::optional<Score> Scorer::take() {
  const MutexLock lock(mutex_);
  return std::exchange(score_, std::nullopt);
}

}  // namespace longhaul
