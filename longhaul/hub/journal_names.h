// How the files of a journal are called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace longhaul {

// "snapshot-000000000042.safetensors" and "rounds-000000000042.log": the next round is of step 42.
std::string snapshot_name(std::uint64_t step);
std::string log_name(std::uint64_t step);

// The steps of all that are there, in order.
std::vector<std::uint64_t> snapshots_in(const std::filesystem::path& directory);
std::vector<std::uint64_t> logs_in(const std::filesystem::path& directory);

}  // namespace longhaul
