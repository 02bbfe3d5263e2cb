#include "apps/longhaul/task_file.h"

#include <filesystem>

#include "longhaul/base/file.h"
#include "longhaul/base/state.h"

namespace longhaul::apps {
namespace {

constexpr std::size_t kMostTaskBytes = std::size_t{16} << 20U;

std::filesystem::path task_path(const std::string& directory) {
  return std::filesystem::path(directory) / "task.safetensors";
}

}  // namespace

Status write_task(const std::string& directory, const v1::Task& task) {
  const std::string bytes = task.SerializeAsString();
  const std::span view = std::as_bytes(std::span(bytes));
  State state;
  state.blobs["task"] = {view.begin(), view.end()};
  return write_file_atomically(task_path(directory), to_bytes(state));
}

Result<v1::Task> read_task(const std::string& directory) {
  const std::filesystem::path path = task_path(directory);
  if (!std::filesystem::exists(path))
    return Error{ErrorCode::kNotFound,
                 directory + ": not a directory of a hub, which `longhaul hub --dir` writes"};
  const Result<ByteBuffer> bytes = read_file(path, kMostTaskBytes);
  if (!bytes.ok()) return bytes.error();
  Result<State> state = state_from_bytes(*bytes);
  if (!state.ok()) return std::move(state).error().within(path.string());
  const Result<ByteView> blob = state->blob("task");
  if (!blob.ok()) return Error(blob.error()).within(path.string());
  v1::Task task;
  if (!task.ParseFromArray(blob->data(), static_cast<int>(blob->size())))
    return Error{ErrorCode::kCorruptPayload, path.string() + ": damaged"};
  return task;
}

}  // namespace longhaul::apps
