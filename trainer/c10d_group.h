// Ranks that meet over the network and gather by a process group of c10d. Built with Gloo; the
// group itself may be any that gathers equal sizes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trainer/all_gather.h"

namespace longhaul::trainer {

struct GroupOptions {
  std::size_t rank = 0;
  std::size_t size = 1;
  std::string host;  // where the store is, with the port
  std::uint16_t port = 0;
  bool is_store_there = false;         // torchrun has it; else rank 0 has it
  std::string attempt;                 // separates runs that share a store
  std::string interface;               // of the network; empty: the one that leads to the store
  std::function<bool()> is_cancelled;  // looked at while it waits
};

class C10dGroup final : public AllGather {
 public:
  // Waits until all ranks are here. An error names those that did not come.
  static Result<std::unique_ptr<C10dGroup>> meet(const GroupOptions& options);
  ~C10dGroup() override;
  C10dGroup(const C10dGroup&) = delete;
  C10dGroup& operator=(const C10dGroup&) = delete;

  // A thread of its own tells the others that this rank is alive, and notices who is not: a gather
  // ends within ten seconds after a rank is gone.
  Result<std::vector<ByteBuffer>> gather(ByteView own) override;

  // After the last gather of all ranks.
  void leave();
  // This rank gives up: the others are told why, and its own gather ends. Gloo's threads may be
  // stuck in it, so the process has to end by std::_Exit().
  void end(const std::string& why);

 private:
  struct Members;  // all that needs torch's headers
  explicit C10dGroup(std::unique_ptr<Members> members);

  std::unique_ptr<Members> members_;
};

}  // namespace longhaul::trainer
