// The faults of a rehearsal, all drawn from one seed: kind, victim, time and length. At most two
// happen at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"

namespace longhaul {

// The faults that a rehearsal can inject.
enum class FaultKind : std::uint8_t {
  kKillReplica,  // SIGKILL; a new process of that name begins without a checkpoint
  kStopReplica,  // SIGSTOP, then SIGCONT
  kCutLink,      // no byte, no reset
  kDropLink,     // every connection of the link is reset
  kKillHub,      // SIGKILL; a new one goes on from the journal
};

// One fault: its kind, its target, its time.
struct Fault {
  FaultKind kind = FaultKind::kDropLink;
  std::size_t slot = 0;  // of the replica; for the hub of no meaning
  Seconds pause{};       // since the fault before it began
  Seconds length{};
  Seconds end{};  // since the start of the run; set when it begins
};

// "replica-2 stopped for 3.1s"
std::string text_of(const Fault& fault);

// How many faults to inject, and from which seed.
struct FaultOptions {
  std::size_t count = 0;  // 0: none, unless `duration` asks for them
  Seconds duration{};     // faults go on for so long
  std::uint64_t seed = 1;

  [[nodiscard]] bool is_wanted() const { return count > 0 || duration.count() > 0; }
};

// The faults of a rehearsal, as they come.
class Faults {
 public:
  Faults(const FaultOptions& settings, std::size_t replicas);

  using Action = std::function<Status(const Fault&)>;
  // `time`: since the start of the run. Ends what is over and begins what is due.
  Status on_tick(Seconds time, const Action& begin, const Action& end);
  // No more of them: only what is under way ends.
  void stop() { is_stopped_ = true; }

  // And a moment has passed since, in which others have noticed.
  [[nodiscard]] bool is_over(Seconds time) const;
  [[nodiscard]] std::size_t begun() const { return begun_; }
  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  [[nodiscard]] Fault draw();
  [[nodiscard]] bool is_through(Seconds time) const;
  [[nodiscard]] bool is_free(const Fault& fault) const;

  FaultOptions settings_;
  std::size_t replicas_;
  std::mt19937_64 random_;
  std::vector<Fault> under_way_;
  Fault next_;
  Seconds next_at_{};
  Seconds last_end_{};
  std::size_t begun_ = 0;
  bool is_stopped_ = false;
  std::string last_;
};

}  // namespace longhaul
