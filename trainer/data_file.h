// Files of data sets: found in one of several directories, plain or gzipped, read only up to the
// length that is expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

// The first of `directories` that has `name` or `name`.gz. The error lists where it looked and ends
// with `advice`.
Result<std::filesystem::path> find_data_file(std::span<const std::filesystem::path> directories,
                                             const std::string& name, const std::string& advice);

// Reads a plain or gzipped file from front to back. Every error names the file.
class DataFile {
 public:
  static Result<DataFile> open(const std::filesystem::path& path);

  // Exactly `count` bytes, or an error; memory grows with what is really there, not with `count`.
  Result<std::vector<std::uint8_t>> read(std::size_t count);

  // The rest of the file, which must be at most `limit` bytes.
  Result<std::vector<std::uint8_t>> read_rest(std::size_t limit);

  // An error unless everything has been read (of a gzipped file: and its checksum is right).
  Status expect_end();

  [[nodiscard]] Error damaged(const std::string& what) const;

 private:
  using Handle = std::unique_ptr<void, void (*)(void*)>;

  DataFile(Handle file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  // Appends up to `count` bytes; fewer only at the end of the file.
  Status append(std::vector<std::uint8_t>& bytes, std::size_t count);

  Handle file_;  // gzFile of zlib, which also reads plain files
  std::string name_;
};

}  // namespace longhaul::trainer
