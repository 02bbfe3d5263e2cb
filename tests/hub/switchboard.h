// The address of a hub: the replicas' networks reach whichever hub is there.
#pragma once

#include <memory>
#include <utility>

#include "longhaul/base/mutex.h"
#include "longhaul/hub/hub.h"

namespace longhaul::testing {

class Switchboard {
 public:
  [[nodiscard]] Acceptor acceptor() {
    return [this](StreamPtr stream) -> StreamListener {
      const MutexLock lock(mutex_);
      if (hub_ != nullptr) return hub_->on_stream(std::move(stream));
      return [](const StreamNews& /*what*/) {};
    };
  }
  // None: streams end at once.
  void connect(Hub* hub) {
    const MutexLock lock(mutex_);
    hub_ = hub;
  }

 private:
  Mutex mutex_;
  Hub* hub_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace longhaul::testing
