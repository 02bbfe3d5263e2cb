// Whole files: read up to a limit, and written so that a crash leaves the old one or the new one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

#include "longhaul/base/byte_rope.h"
#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"

namespace longhaul {

// Writes a file beside `path`, waits until it is on disk, and lets it take the place of `path`.
// Every error names the file.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes);
Status write_rope_atomically(const std::filesystem::path& path, const ByteRope& bytes);

// In the header of every file that to_bytes() of state.h makes.
inline constexpr std::string_view kStateMark = "\"longhaul\":";

// "-", or the name that the system has for it.
bool is_standard_output(const std::filesystem::path& path);

// The file to write for the `path` that a user names for a result: the end of its symbolic links,
// whether it exists or not. Refuses a directory, device, FIFO or socket. Refuses someone else's
// file too, unless it is forced. A file is someone else's if it has no `mark` in its first MiB, as
// every file of this kind that Longhaul writes has, and is not empty. Touches nothing, so a command
// can ask before long work. Standard output stays as it is.
Result<std::filesystem::path> output_target(const std::filesystem::path& path,
                                            std::string_view mark, bool is_forced);

// Writes output_target() atomically, or through standard output.
Status write_output(const std::filesystem::path& path, ByteView bytes, std::string_view mark,
                    bool is_forced);

// Removes the rest that killed processes have left of such writes in a directory, where its name
// starts so.
void remove_unfinished_writes(const std::filesystem::path& directory, std::string_view start);

// All of a file, which must not be longer than `most_bytes`.
Result<ByteBuffer> read_file(const std::filesystem::path& path, std::size_t most_bytes);

}  // namespace longhaul
