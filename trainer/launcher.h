// Finds this process among the ranks that a launcher started, and where the ranks meet. Pure: the
// environment comes in as a map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

using Environment = std::map<std::string, std::string>;

// This process among the ranks, and how it meets the others.
struct RankOptions {
  std::string launcher;  // "torchrun"
  std::size_t rank = 0;
  std::size_t size = 1;
  std::size_t local_rank = 0;  // on this machine; 0 if the launcher does not say
  std::string host;            // where the store is, with the port
  std::uint16_t port = 0;
  bool is_store_there = false;         // torchrun has it; else rank 0 has it
  std::string attempt;                 // separates runs that share a store
  std::string interface;               // of the network; empty: the one that leads to the store
  std::function<bool()> is_cancelled;  // looked at while it waits
};

// Launchers may be nested, and the innermost one counts: torchrun, Open MPI, PMI, srun,
// LeaderWorkerSet. Fills in the launcher and the ranks. Errors are kInvalidArgument.
Result<RankOptions> find_rank(const Environment& environment);

// HOST:PORT where rank 0 waits for the others. MASTER_ADDR and MASTER_PORT name it, else `option`.
// Else it is the first host of the Slurm step, with a port that follows from the job's number.
// Errors are kInvalidArgument.
Result<std::string> find_rendezvous(const Environment& environment, const std::string& option);

// The first host of a Slurm list: "gpu[08-11,20],login1" begins with gpu08.
Result<std::string> first_host(std::string_view list);

}  // namespace longhaul::trainer
