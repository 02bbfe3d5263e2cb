// Exit codes of the programs: a contract with scripts.
#pragma once

namespace longhaul {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitWrongUse = 2;
inline constexpr int kExitStopped = 75;  // by the hub, before the last step: start it again
inline constexpr int kExitInterrupted = 130;

}  // namespace longhaul
