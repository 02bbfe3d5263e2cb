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

class Hub {
 public:
  // Goes on where an earlier hub was killed, if the directory of the options holds something.
  // `clock` outlives the hub.
  static Result<std::unique_ptr<Hub>> start(HubOptions options, const Clock& clock, const Log& log);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  StreamListener on_stream(StreamPtr stream);
  // For transports, which end before the hub.
  [[nodiscard]] Acceptor acceptor() {
    return [this](StreamPtr stream) { return on_stream(std::move(stream)); };
  }

  // As of a moment ago; who is here, as of now.
  [[nodiscard]] HubStatus status() const;
  // Connections that ended before there was a stream, and why the last one did.
  void note_strangers(std::uint64_t count, const std::string& why);
  // The step that everyone is in becomes the last one.
  void finish(v1::FinishCause cause);

 private:
  // The end of an errand, or something else to do on the hub's thread.
  using Command = std::variant<StreamEvent, Errands::End>;

  Hub(HubOptions options, const Clock& clock, const Log& log);
  void run(const std::stop_token& stop);
  bool take(Deadline deadline);
  void publish_status();

  const Clock& clock_;
  std::shared_ptr<Mailbox<Command>> inbox_;  // shared: streams outlive the hub for a moment
  std::atomic<StreamId> next_stream_{1};
  mutable Mutex mutex_;
  HubStatus status_ GUARDED_BY(mutex_);
  Workers workers_;  // of errands
  ErrandThread errands_;
  HubCore core_;         // of the thread
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
