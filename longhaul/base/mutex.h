// std::mutex and std::condition_variable_any with the annotations that clang's -Wthread-safety
// checks: a member marked GUARDED_BY(mutex_) is only touched under the lock, or the tidy and fuzz
// presets do not compile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "longhaul/base/clock.h"

#if defined(__clang__)
#define LONGHAUL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LONGHAUL_THREAD_ANNOTATION(x)
#endif

#define CAPABILITY(x) LONGHAUL_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY LONGHAUL_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) LONGHAUL_THREAD_ANNOTATION(guarded_by(x))
#define PT_GUARDED_BY(x) LONGHAUL_THREAD_ANNOTATION(pt_guarded_by(x))
#define REQUIRES(...) LONGHAUL_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) LONGHAUL_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) LONGHAUL_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define EXCLUDES(...) LONGHAUL_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS LONGHAUL_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace longhaul {

// A std::mutex that clang's thread safety analysis knows.
class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable for Mutex.
// Waits have a predicate, which runs under the lock: cv.wait(mutex_, [this]() REQUIRES(mutex_) {
// return is_ready_; }). The waits themselves are not analysed: clang cannot see that the
// predicate's mutex is the one passed in.
class CondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  template <typename Predicate>
  void wait(Mutex& mutex, Predicate predicate) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    condition_.wait(mutex, std::move(predicate));
  }

  // False when the deadline passed and the predicate still does not hold.
  template <typename Predicate>
  [[nodiscard]] bool wait_until(Mutex& mutex, Deadline deadline, Predicate predicate)
      REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_until(mutex, deadline, std::move(predicate));
  }

 private:
  std::condition_variable_any condition_;
};

}  // namespace longhaul
