// The address of a hub: the replicas' networks reach whichever hub is there.
#pragma once

#include <memory>
#include <utility>

#include "longhaul/base/mutex.h"
#include "longhaul/hub/hub.h"

namespace longhaul::testing {

class Switchboard final : public Acceptor {
 public:
  StreamEventsPtr on_stream(StreamPtr stream) override {
    const MutexLock lock(mutex_);
    if (hub_ != nullptr) return hub_->on_stream(std::move(stream));
    class Deaf final : public StreamEvents {
      void on_frame(Frame /*frame*/) override {}
      void on_written() override {}
      void on_closed(const Error& /*why*/) override {}
    };
    return std::make_shared<Deaf>();
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
