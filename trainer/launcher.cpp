#include "trainer/launcher.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

namespace longhaul::trainer {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;  // null: it has none
};

// The innermost first. mpirun inside a Slurm job sees variables of both, and Slurm's are then
// those of the job step that holds mpirun's daemon.
constexpr std::array kLaunchers{
    Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
             "OMPI_COMM_WORLD_LOCAL_RANK"},
    Launcher{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    Launcher{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    Launcher{"LeaderWorkerSet", "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", nullptr},
};
constexpr std::uint64_t kMostRanks = 10'000;
constexpr std::uint64_t kFirstPort = 20'000;  // below the ports that systems choose themselves
constexpr std::uint64_t kPorts = 10'000;

Error wrong(const std::string& what) { return {ErrorCode::kInvalidArgument, what}; }

// Empty counts as not set.
const std::string* find(const Environment& environment, const char* name) {
  const auto found = name == nullptr ? environment.end() : environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

Result<std::uint64_t> number_in(const Environment& environment, const char* name,
                                std::uint64_t most) {
  const std::string& text = *find(environment, name);
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure == std::errc() && rest == end && number <= most) return number;
  return wrong(std::string(name) + ": expected a whole number up to " + std::to_string(most) +
               ", got '" + text + "'");
}

Result<RankOptions> place_by(const Launcher& launcher, const Environment& environment) {
  const Result<std::uint64_t> rank = number_in(environment, launcher.rank, kMostRanks);
  const Result<std::uint64_t> size = number_in(environment, launcher.size, kMostRanks);
  if (!rank.ok()) return rank.error();
  if (!size.ok()) return size.error();
  if (*rank >= *size)
    return wrong(std::string(launcher.rank) + " is " + std::to_string(*rank) + ", but " +
                 launcher.size + " is " + std::to_string(*size));
  RankOptions place{.launcher = launcher.name, .rank = *rank, .size = *size};
  if (find(environment, launcher.local_rank) == nullptr) return place;
  const std::uint64_t local = LONGHAUL_TRY(number_in(environment, launcher.local_rank, kMostRanks));
  place.local_rank = local;
  return place;
}

}  // namespace

Result<RankOptions> find_rank(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers)
    if (find(environment, launcher.rank) != nullptr && find(environment, launcher.size) != nullptr)
      return place_by(launcher, environment);
  std::string known;
  for (const Launcher& launcher : kLaunchers)
    known += std::string(known.empty() ? "" : ", ") + launcher.rank + " and " + launcher.size +
             " (" + launcher.name + ')';
  return wrong("no launcher tells this process its rank; expected " + known);
}

Result<std::string> first_host(std::string_view list) {
  const std::string_view before = list.substr(0, list.find_first_of("[,"));
  std::string host(before);
  if (before.size() < list.size() && list[before.size()] == '[') {
    const std::string_view numbers = list.substr(before.size() + 1);
    const std::size_t end = numbers.find(']');
    const std::string_view first = numbers.substr(0, numbers.find_first_of("-,]"));
    if (end == std::string_view::npos || first.empty())
      return wrong("host list: expected hosts such as node[01-04], got '" + std::string(list) +
                   "'");
    const std::string_view rest = numbers.substr(end + 1);
    host.append(first).append(rest.substr(0, rest.find(',')));
  }
  if (!host.empty() && host.find('[') == std::string::npos) return host;
  return wrong("host list: expected hosts such as node[01-04], got '" + std::string(list) + "'");
}

Result<std::string> find_rendezvous(const Environment& environment, const std::string& option) {
  const std::string* const address = find(environment, "MASTER_ADDR");
  const std::string* const port = find(environment, "MASTER_PORT");
  if (address != nullptr && port != nullptr) {
    const bool is_ipv6 = address->find(':') != std::string::npos && address->front() != '[';
    return (is_ipv6 ? '[' + *address + ']' : *address) + ':' + *port;
  }
  if (!option.empty()) return option;
  const std::string* hosts = find(environment, "SLURM_STEP_NODELIST");
  if (hosts == nullptr) hosts = find(environment, "SLURM_NODELIST");
  if (hosts == nullptr || find(environment, "SLURM_JOB_ID") == nullptr)
    return wrong(
        "no place to meet: expected MASTER_ADDR and MASTER_PORT, --rendezvous HOST:PORT, or a "
        "Slurm step");
  std::string host = LONGHAUL_TRY(first_host(*hosts));
  const std::uint64_t job = LONGHAUL_TRY(number_in(environment, "SLURM_JOB_ID", UINT64_MAX));
  return host + ':' + std::to_string(kFirstPort + job % kPorts);
}

}  // namespace longhaul::trainer
