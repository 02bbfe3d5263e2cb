// Work that grows with the model, done away from the thread that answers. A loop hands out an
// errand and goes on; the end of the errand comes back to the loop.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "longhaul/base/mailbox.h"

namespace longhaul {

// Hands out errands.
// Errands are done one at a time, in the order in which they were given.
class Errands {
 public:
  using End = std::function<void()>;    // runs on the loop, as an event of its own
  using Errand = std::function<End()>;  // runs elsewhere: it touches only the values it holds

  virtual ~Errands() = default;
  virtual void run(Errand errand) = 0;
};

// Does `work` elsewhere, and then calls `end` with its result on the loop.
template <typename Work, typename End>
void run_errand(Errands& errands, Work work, End end) {
  errands.run([work = std::move(work), end = std::move(end)]() mutable -> Errands::End {
    // Shared: functions are copyable, and a result need not be.
    const auto result = std::make_shared<std::invoke_result_t<Work&>>(work());
    return [end = std::move(end), result]() mutable { end(std::move(*result)); };
  });
}

// Does errands on a thread of its own.
class ErrandThread final : public Errands {
 public:
  // `deliver` hands an end to the loop. It is called on the thread, and may wait for the loop.
  explicit ErrandThread(std::function<void(End)> deliver);
  ~ErrandThread() override { stop(); }
  ErrandThread(const ErrandThread&) = delete;
  ErrandThread& operator=(const ErrandThread&) = delete;

  void run(Errand errand) override;

  // The errand under way is finished, and its end is delivered. Those that wait are dropped, as are
  // those that come later.
  void stop();

 private:
  void serve(const std::stop_token& stop);

  std::function<void(End)> deliver_;
  Mailbox<Errand> waiting_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
