#include "longhaul/base/workers.h"

#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {

Workers::Workers(std::size_t count) {
  LONGHAUL_CHECK_GE(count, std::size_t{1});
  threads_.reserve(count - 1);
  for (std::size_t i = 1; i < count; ++i) threads_.emplace_back([this] { serve(); });
}

Workers::~Workers() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  wake_.notify_all();
}

void Workers::run(std::size_t tasks, const std::function<void(std::size_t)>& task) {
  if (threads_.empty() || tasks <= 1) {
    for (std::size_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  {
    const MutexLock lock(mutex_);
    LONGHAUL_CHECK(task_ == nullptr);
    task_ = &task;
    next_ = 0;
    tasks_ = tasks;
    failure_ = nullptr;
  }
  wake_.notify_all();
  work_through();
  std::exception_ptr failure;
  {
    const MutexLock lock(mutex_);
    idle_.wait(mutex_, [this]() REQUIRES(mutex_) { return next_ == tasks_ && running_ == 0; });
    task_ = nullptr;
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

void Workers::serve() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      wake_.wait(mutex_, [this]() REQUIRES(mutex_) { return closed_ || next_ < tasks_; });
      if (closed_) return;
    }
    work_through();
  }
}

void Workers::work_through() {
  while (true) {
    const std::function<void(std::size_t)>* task = nullptr;
    std::size_t index = 0;
    {
      const MutexLock lock(mutex_);
      if (next_ == tasks_) return;
      task = task_;
      index = next_++;
      ++running_;
    }
    std::exception_ptr failure;
    try {
      (*task)(index);
    } catch (...) {
      failure = std::current_exception();
    }
    const MutexLock lock(mutex_);
    --running_;
    if (failure) {
      // Given away or dropped while the lock is held: the caller may be done with it right after.
      if (!failure_) failure_ = std::move(failure);
      failure = nullptr;
      next_ = tasks_;  // what has not begun is left out
    }
    if (next_ == tasks_ && running_ == 0) idle_.notify_all();
  }
}

}  // namespace longhaul
