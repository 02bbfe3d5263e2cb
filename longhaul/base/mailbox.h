// A bounded queue of values between threads. Closing it is how its consumer is told to stop.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// A bounded queue between threads.
// Every function may be called from every thread. Values come out in the order in which they went
// in; what was accepted before close() can still be taken after it.
template <typename T>
class Mailbox {
 public:
  // Precondition: capacity > 0.
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) { LONGHAUL_CHECK(capacity > 0); }

  // Blocks while full: a slow consumer slows its producer. False when closed, and the value is
  // dropped.
  [[nodiscard]] bool push(T value) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      not_full_.wait(
          mutex_, [this]() REQUIRES(mutex_) { return is_closed_ || values_.size() < capacity_; });
      if (is_closed_) return false;
      values_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  // Never blocks. False when full or closed, and then the value is left as it was.
  [[nodiscard]] bool try_push(T&& value) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (is_closed_ || values_.size() >= capacity_) return false;
      values_.push_back(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  // Blocks while empty. Nothing when closed and drained.
  [[nodiscard]] std::optional<T> pop() EXCLUDES(mutex_) { return pop_until(Deadline::max()); }

  // As pop, but gives up at the deadline; is_drained() tells the two kinds of nothing apart. A
  // deadline that has passed takes what is there.
  [[nodiscard]] std::optional<T> pop_until(Deadline deadline) EXCLUDES(mutex_) {
    std::optional<T> value;
    {
      const MutexLock lock(mutex_);
      const auto is_ready = [this]() REQUIRES(mutex_) { return is_closed_ || !values_.empty(); };
      if (!not_empty_.wait_until(mutex_, deadline, is_ready) || values_.empty()) return value;
      value.emplace(std::move(values_.front()));
      values_.pop_front();
    }
    not_full_.notify_one();
    return value;
  }

  // Wakes everyone who waits. Repeating it does nothing.
  void close() EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      is_closed_ = true;
    }
    not_full_.notify_all();
    not_empty_.notify_all();
  }

  // As of a moment ago.
  [[nodiscard]] std::size_t size() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return values_.size();
  }

  // Closed and empty: nothing will ever come out again.
  [[nodiscard]] bool is_drained() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return is_closed_ && values_.empty();
  }

 private:
  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar not_full_;
  CondVar not_empty_;
  std::deque<T> values_ GUARDED_BY(mutex_);
  bool is_closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
