#include "trainer/data_file.h"

#include <zlib.h>

#include <algorithm>
#include <system_error>

namespace longhaul::trainer {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20U;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

}  // namespace

Result<std::filesystem::path> find_data_file(std::span<const std::filesystem::path> directories,
                                             const std::string& name, const std::string& advice) {
  std::string looked;
  for (const auto& directory : directories) {
    for (const char* ending : {"", ".gz"}) {
      std::error_code unreadable;
      std::filesystem::path path = directory / (name + ending);
      if (std::filesystem::is_regular_file(path, unreadable)) return path;
    }
    looked += (looked.empty() ? "" : ", ") + directory.string();
  }
  return Error{ErrorCode::kNotFound, name + " (or .gz) not found in " + looked + "; " + advice};
}

Result<DataFile> DataFile::open(const std::filesystem::path& path) {
  Handle file(gzopen(path.c_str(), "rb"), [](void* opened) { gzclose(handle(opened)); });
  if (!file) return Error{ErrorCode::kIo, path.string() + ": cannot be opened"};
  gzbuffer(handle(file.get()), 1U << 17U);
  return DataFile(std::move(file), path.string());
}

Error DataFile::damaged(const std::string& what) const {
  return {ErrorCode::kCorruptPayload, name_ + ": " + what};
}

Status DataFile::append(std::vector<std::uint8_t>& bytes, std::size_t count) {
  while (count > 0) {
    const std::size_t piece = std::min(count, kPiece);
    const std::size_t before = bytes.size();
    bytes.resize(before + piece);
    const int got =
        gzread(handle(file_.get()), bytes.data() + before, static_cast<unsigned>(piece));
    bytes.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* reason = gzerror(handle(file_.get()), &code);
    if (got < 0 || code == Z_BUF_ERROR) return damaged(std::string("damaged gzip data: ") + reason);
    if (got == 0) break;
    count -= static_cast<std::size_t>(got);
  }
  return Done{};
}

Result<std::vector<std::uint8_t>> DataFile::read(std::size_t count) {
  std::vector<std::uint8_t> bytes;
  LONGHAUL_TRY(append(bytes, count));
  if (bytes.size() < count) {
    return damaged("truncated: ends after " + std::to_string(bytes.size()) + " of " +
                   std::to_string(count) + " bytes");
  }
  return bytes;
}

Result<std::vector<std::uint8_t>> DataFile::read_rest(std::size_t limit) {
  std::vector<std::uint8_t> bytes;
  LONGHAUL_TRY(append(bytes, limit + 1));
  if (bytes.size() > limit) {
    return damaged("longer than the " + std::to_string(limit) + " bytes that are accepted");
  }
  return bytes;
}

Status DataFile::expect_end() {
  std::vector<std::uint8_t> more;
  LONGHAUL_TRY(append(more, 1));
  if (!more.empty()) return damaged("goes on after its announced end");
  return Done{};
}

}  // namespace longhaul::trainer
