#include "longhaul/base/errands.h"

#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

// Far more than loops hand out: they stop reading from peers when a few of a peer's wait.
constexpr std::size_t kMostWaiting = 1 << 16;

}  // namespace

ErrandThread::ErrandThread(std::function<void(End)> deliver)
    : deliver_(std::move(deliver)),
      waiting_(kMostWaiting),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void ErrandThread::stop() {
  thread_.request_stop();
  waiting_.close();
  if (thread_.joinable()) thread_.join();
}

void ErrandThread::run(Errand errand) {
  const bool is_taken = waiting_.try_push(std::move(errand));
  LONGHAUL_CHECK(is_taken || thread_.get_stop_token().stop_requested());
}

void ErrandThread::serve(const std::stop_token& stop) {
  while (std::optional<Errand> errand = waiting_.pop()) {
    if (stop.stop_requested()) return;
    End end = (*errand)();
    errand.reset();  // what it holds may be large
    deliver_(std::move(end));
  }
}

}  // namespace longhaul
