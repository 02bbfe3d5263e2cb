// The bytes of a hub's log of closed rounds; docs/file_formats.md describes them. A reader finds
// every record that is whole, whatever is before or after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/hub/journal.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

inline constexpr std::size_t kLogHeaderBytes = 32;
inline constexpr std::size_t kRecordHeaderBytes = 64;

// How a log begins whose rounds have this number and later ones.
std::string log_header(std::uint64_t run, std::uint64_t first);

// The header of a record with that message and payloads of that many bytes.
std::string record_header(std::uint64_t run, const JournalRound& round, const std::string& message,
                          std::size_t payload_bytes);
// Header and message of a record: its payloads follow, the mean and then the whole one.
std::string record_start(std::uint64_t run, const JournalRound& round);

// Bytes of a log that are no whole record.
struct LogDamage {
  std::size_t begin = 0;
  std::size_t bytes = 0;
  // The file ends inside its last record, as when the hub is killed while it writes. A log that
  // was cut off later looks the same.
  bool is_torn = false;
  std::optional<RoundId> round{};         // of the first record that begins in them, if it says so
  std::optional<std::uint64_t> number{};  // of the last record that begins in them
};

// A log as it was read.
struct LogFile {
  std::filesystem::path path{};  // if a caller notes it
  std::size_t bytes = 0;
  std::optional<std::uint64_t> first{};  // as log_header() has it; nothing: that is damaged
  std::uint64_t end = 0;                 // after its last round
  std::vector<JournalRound> rounds{};    // in the order of the file
  std::vector<LogDamage> damage{};       // likewise

  // More than an end that was not written.
  [[nodiscard]] bool is_damaged() const;
  // Can rounds have closed after all that is known of, and be in its damaged end? A header alone
  // holds none.
  [[nodiscard]] bool hides_rounds() const;
};

// Bytes of another run are damage.
LogFile read_log(ByteView file, std::uint64_t run);

}  // namespace longhaul
