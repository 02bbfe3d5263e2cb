#include "longhaul/access/private_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "longhaul/access/token.h"

namespace longhaul::access {
namespace {

namespace fs = std::filesystem;

constexpr ::mode_t kFileMode = 0600;
constexpr ::mode_t kDirectoryMode = 0700;
constexpr ::mode_t kOthers = 0077;
constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

// Call it before anything else changes errno.
Error os_error(const fs::path& path, const std::string& action) {
  const int cause = errno;
  const ErrorCode code = cause == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  return Error{
      code, path.string() + ": cannot " + action + ": " + std::generic_category().message(cause)};
}

std::string mode_text(::mode_t mode) {
  std::string text = "0000";
  for (std::size_t i = 0; i < text.size(); ++i)
    text[text.size() - 1 - i] = static_cast<char>('0' + ((mode >> (3 * i)) & 7U));
  return text;
}

OwnedFd open_new(const fs::path& path) {
  return OwnedFd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0;
}

// A rename is on disk when its directory is.
Status sync_directory(fs::path directory) {
  if (directory.empty()) directory = ".";
  const OwnedFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return os_error(directory, "write this directory");
  return Done{};
}

Result<std::string> read_all(const OwnedFd& fd, const fs::path& path) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ::ssize_t count = ::read(fd.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os_error(path, "read this file");
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kMostBytes)
      return Error{ErrorCode::kCorruptPayload, path.string() + ": over 1 MiB, far too long"};
  }
}

// O_NONBLOCK: the open of a FIFO would wait for a writer.
Result<std::string> read_with(const fs::path& path, ::mode_t forbidden) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!fd.is_open() || ::fstat(fd.get(), &facts) != 0) return os_error(path, "read this file");
  if (!S_ISREG(facts.st_mode))
    return Error{ErrorCode::kInvalidArgument, path.string() + ": expected a file"};
  if ((facts.st_mode & forbidden) != 0)
    return Error{ErrorCode::kMismatch, path.string() + ": others can read or change it (mode " +
                                           mode_text(facts.st_mode) +
                                           "); if nobody did, run: chmod 600 " + path.string()};
  return read_all(fd, path);
}

}  // namespace

Status make_private_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) == 0) return Done{};
  if (errno != EEXIST) return os_error(path, "make this directory");
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return os_error(path, "read this directory");
  if (!S_ISDIR(facts.st_mode))
    return Error{ErrorCode::kInvalidArgument, path.string() + ": expected a directory"};
  if ((facts.st_mode & kOthers) == 0) return Done{};
  return Error{ErrorCode::kMismatch, path.string() + ": others can enter it (mode " +
                                         mode_text(facts.st_mode) + "); run: chmod 700 " +
                                         path.string()};
}

Status create_private_file(const fs::path& path, std::string_view text) {
  const OwnedFd fd = open_new(path);
  if (!fd.is_open()) return os_error(path, "create this file");
  if (write_all(fd.get(), text)) return Done{};
  Error failure = os_error(path, "write this file");
  ::unlink(path.c_str());
  return failure;
}

Result<std::string> read_file(const fs::path& path) { return read_with(path, 0); }
Result<std::string> read_private_file(const fs::path& path) { return read_with(path, kOthers); }

StagedFile::~StagedFile() {
  if (!staged_.empty()) ::unlink(staged_.c_str());
}

Result<StagedFile> StagedFile::write(const fs::path& path, std::string_view text) {
  if (path.filename().empty())
    return Error{ErrorCode::kInvalidArgument, path.string() + ": expected the name of a file"};
  if (text.size() > kMostBytes)
    return Error{ErrorCode::kInvalidArgument,
                 path.string() + ": over 1 MiB, which nobody would read"};
  const fs::path beside =
      path.parent_path() / ('.' + path.filename().string() + '.' + random_hex(8));
  Status created = create_private_file(beside, text);
  // The name beside it means nothing to a user.
  if (!created.ok())
    return Error{created.error().code,
                 path.string() + created.error().message.substr(beside.string().size())};
  return StagedFile(path, beside);
}

Status StagedFile::commit() && {
  if (::rename(staged_.c_str(), path_.c_str()) != 0) return os_error(path_, "write this file");
  staged_.clear();
  return sync_directory(path_.parent_path());
}

Result<OwnedFd> lock_directory(const fs::path& directory, std::string_view busy) {
  OwnedFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return os_error(directory, "open this directory");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return os_error(directory, "lock this directory");
  return Error{ErrorCode::kIo, directory.string() + ": " + std::string(busy)};
}

}  // namespace longhaul::access
