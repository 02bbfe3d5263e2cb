// Whole files: read up to a limit, and written so that a crash leaves the old one or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul {

enum class FileAccess : std::uint8_t {
  kUsual,      // as the process's umask has it
  kOwnerOnly,  // mode 600
};

// Writes a file beside `path`, waits until it is on disk, and lets it take the place of `path`.
// Every error names the file.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes,
                             FileAccess access = FileAccess::kUsual);

// What earlier processes that were killed have left beside `path`.
void remove_unfinished_writes(const std::filesystem::path& path);

// All of a file, which must not be longer than `most_bytes`.
Result<ByteBuffer> read_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace longhaul
