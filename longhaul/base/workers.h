// A fixed crew of threads that shares out independent tasks; the caller works too. A task must
// compute the same whichever thread runs it: results are equal for every number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// That this process may use; at least 1.
inline std::size_t all_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

class Workers {
 public:
  // `count` includes the calling thread: Workers(1) starts none.
  explicit Workers(std::size_t count = 1);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] std::size_t count() const { return threads_.size() + 1; }

  // Runs task(0) … task(tasks - 1), each once, and returns when all have ended. The first exception
  // that a task throws is thrown here. One caller at a time; a task must not call run().
  void run(std::size_t tasks, const std::function<void(std::size_t)>& task);

 private:
  void serve();
  void work_through();

  Mutex mutex_;
  CondVar wake_;
  CondVar idle_;
  const std::function<void(std::size_t)>* task_ GUARDED_BY(mutex_) = nullptr;
  std::size_t next_ GUARDED_BY(mutex_) = 0;
  std::size_t tasks_ GUARDED_BY(mutex_) = 0;
  std::size_t running_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: ends before what it uses
};

}  // namespace longhaul
