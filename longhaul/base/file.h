// Whole files: read up to a limit, and written so that a crash leaves the old one or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

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

// What killed processes have left of such writes in a directory, where its name starts so.
void remove_unfinished_writes(const std::filesystem::path& directory, std::string_view start);

// All of a file, which must not be longer than `most_bytes`.
Result<ByteBuffer> read_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace longhaul
