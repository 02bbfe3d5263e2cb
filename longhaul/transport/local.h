// Streams inside one process: what gRPC does between machines, without a socket and without a
// thread. Faults are calls. One LocalNetwork is one replica's link.
#pragma once

#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

class LocalNetwork final : public Connector {
 public:
  // `peer_name` is what it is told of the streams' other end.
  LocalNetwork(Acceptor acceptor, std::string peer_name);
  ~LocalNetwork() override;
  LocalNetwork(const LocalNetwork&) = delete;
  LocalNetwork& operator=(const LocalNetwork&) = delete;

  StreamPtr open(StreamListener listener) override;

  // From now on nothing passes and nobody is told; new streams stay silent as well.
  void cut();
  // Frames that were held back pass.
  void restore();
  // Every stream ends, at both ends.
  void drop_all();

 private:
  class Pair;
  std::vector<std::shared_ptr<Pair>> pairs();

  const Acceptor acceptor_;
  const std::string peer_name_;
  Mutex mutex_;
  bool is_cut_ GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Pair>> pairs_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
