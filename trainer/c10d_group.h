// Ranks that meet over the network, and gather and sum by a process group of c10d. Built with Gloo;
// the group itself may be any that gathers equal sizes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "trainer/launcher.h"

namespace longhaul::trainer {

class C10dGroup {
 public:
  // Waits until all ranks are here. An error names those that did not come.
  static Result<std::unique_ptr<C10dGroup>> meet(const RankOptions& options);
  ~C10dGroup();
  C10dGroup(const C10dGroup&) = delete;
  C10dGroup& operator=(const C10dGroup&) = delete;

  // An AllGather. Another thread tells the others that this rank is alive, and notices lost ranks.
  // A gather ends within ten seconds after a rank is gone.
  Result<std::vector<ByteBuffer>> gather(ByteView own);
  // An AllReduce. It ends as a gather does; after an error the values may be anything.
  Status sum(std::span<float> values);

  // After the last call of all ranks.
  void leave();
  // This rank gives up: the others are told why, and its own call ends. Gloo's threads may be
  // stuck in it, so the process has to end by std::_Exit().
  void end(const std::string& why);

 private:
  struct Members;  // all that needs torch's headers
  explicit C10dGroup(std::unique_ptr<Members> members);

  std::unique_ptr<Members> members_;
};

}  // namespace longhaul::trainer
