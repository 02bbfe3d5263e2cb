// Finds this process among the ranks that a launcher started, and where the ranks meet. Pure: the
// environment comes in as a map.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

using Environment = std::map<std::string, std::string>;

struct RankPlace {
  std::string launcher;  // "torchrun"
  std::size_t rank = 0;
  std::size_t size = 1;
  std::size_t local_rank = 0;  // on this machine; 0 if the launcher does not say
};

// Launchers may be nested, and the innermost one counts: torchrun, Open MPI, PMI, srun,
// LeaderWorkerSet. Errors are kInvalidArgument.
Result<RankPlace> find_rank(const Environment& environment);

// HOST:PORT where rank 0 waits for the others: MASTER_ADDR and MASTER_PORT, else `option`, else
// the first host of the Slurm step with a port that follows from the job's number. Errors are
// kInvalidArgument.
Result<std::string> find_rendezvous(const Environment& environment, const std::string& option);

// The first host of a Slurm list: "gpu[08-11,20],login1" begins with gpu08.
Result<std::string> first_host(std::string_view list);

}  // namespace longhaul::trainer
