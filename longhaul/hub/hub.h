// The hub as a thread: streams in, rounds closed, means out.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "longhaul/base/mailbox.h"
#include "longhaul/base/mutex.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {

class Hub final : public Acceptor {
 public:
  struct Options {
    std::size_t threads = 1;                        // for means
    std::function<void(const RoundNews&)> watcher;  // called on the hub's thread
  };
  // Goes on where an earlier hub was killed, if the directory of the setup holds something.
  // `clock` outlives the hub.
  static Result<std::unique_ptr<Hub>> start(HubOptions setup, const Clock& clock, const Log& log,
                                            Options options);
  ~Hub() override;
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  StreamEventsPtr on_stream(StreamPtr stream) override;

  // As of a moment ago; who is here, as of now.
  [[nodiscard]] HubStatus status() const;
  // Connections that ended before there was a stream, and why the last one did.
  void note_strangers(std::uint64_t count, const std::string& why);
  // The step that everyone is in becomes the last one.
  void finish(v1::FinishCause cause);

 private:
  struct Finish {
    v1::FinishCause cause = v1::CAUSE_STEPS;
  };
  struct Strangers {
    std::uint64_t count = 0;
    std::string why;
  };
  using Command = std::variant<StreamEvent, Errands::End, Strangers, Finish>;
  class Inbox;

  Hub(HubOptions setup, const Clock& clock, const Log& log, Options options);
  void run(const std::stop_token& stop);
  bool take(Deadline deadline);
  void publish_status();

  const Clock& clock_;
  std::shared_ptr<Inbox> inbox_;
  std::atomic<StreamId> next_stream_{1};
  mutable Mutex mutex_;
  HubStatus status_ GUARDED_BY(mutex_);
  Workers workers_;  // of errands
  ErrandThread errands_;
  HubCore core_;         // of the thread
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
