#include "apps/longhaul/hub/task_file.h"

#include <filesystem>
#include <map>
#include <sstream>

#include "apps/longhaul/command/installed.h"
#include "longhaul/base/file.h"
#include "longhaul/base/state.h"
#include "longhaul/hub/journal.h"

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
  const bool is_damaged =
      std::filesystem::exists(task_path(directory)) && !read_task(directory).ok();
  LONGHAUL_TRY(is_damaged ? set_aside({task_path(directory)}) : Done{});
  return write_file_atomically(task_path(directory), to_bytes(state));
}

Result<v1::Task> read_task(const std::string& directory) {
  const std::filesystem::path path = task_path(directory);
  if (!std::filesystem::exists(path))
    return Error{ErrorCode::kNotFound,
                 directory + ": not a directory of a hub, which `longhaul hub --dir` writes"};
  const ByteBuffer bytes = LONGHAUL_TRY(read_file(path, kMostTaskBytes));
  Result<State> state = state_from_bytes(bytes);
  if (!state.ok()) return std::move(state).error().within(path.string());
  const Result<ByteView> blob = state->blob("task");
  if (!blob.ok()) return Error(blob.error()).within(path.string());
  v1::Task task;
  if (!task.ParseFromArray(blob->data(), static_cast<int>(blob->size())))
    return Error{ErrorCode::kCorruptPayload, path.string() + ": damaged"};
  return task;
}

namespace {

Error other(const std::string& directory, const std::string& what, const std::string& was,
            const std::string& is) {
  return Error{ErrorCode::kInvalidArgument,
               directory + " holds a run with " + what + ' ' + was + ", asked for is " + is +
                   "; `longhaul hub --dir " + directory +
                   "` alone goes on with it, another run needs another directory"};
}

// By key: of one that is set twice the last counts.
std::map<std::string, std::string> settings_of(const auto& texts) {
  std::map<std::string, std::string> settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    settings[text.substr(0, equals)] =
        equals == std::string::npos ? std::string() : text.substr(equals + 1);
  }
  return settings;
}

// The first line in which two files differ.
Error other_scenario(const std::string& directory, const v1::Task& kept, const v1::Task& asked) {
  std::istringstream was(kept.scenario());
  std::istringstream is(asked.scenario());
  std::string old_line;
  std::string new_line;
  int line = 0;
  do {
    ++line;
    if (!std::getline(was, old_line)) old_line = "nothing";
    if (!std::getline(is, new_line)) new_line = "nothing";
  } while (old_line == new_line && (was || is));
  return other(directory, "line " + std::to_string(line) + " of its scenario",
               '\'' + old_line + '\'', '\'' + new_line + '\'');
}

// `is_whole`: settings that are not asked for again are missing.
Status check_same_settings(const std::string& directory, const v1::Task& kept,
                           const std::vector<std::string>& asked, bool is_whole) {
  const std::map<std::string, std::string> was = settings_of(kept.settings());
  const std::map<std::string, std::string> is = settings_of(asked);
  for (const auto& [key, value] : is) {
    const auto found = was.find(key);
    if (found == was.end()) return other(directory, key, "not set", value);
    if (found->second != value) return other(directory, key, found->second, value);
  }
  for (const auto& [key, value] : was) {
    if (is_whole && !is.contains(key)) return other(directory, key, value, "none");
  }
  return Done{};
}

}  // namespace

Result<v1::Task> task_in(const std::string& directory, TaskOptions request,
                         std::optional<std::uint64_t> seed) {
  const bool is_named = !request.scenario.empty();
  request.seed = seed.value_or(1);
  const bool has_task = !directory.empty() && std::filesystem::exists(task_path(directory));
  if (!has_task && !is_named)
    return Error{ErrorCode::kInvalidArgument,
                 directory.empty()
                     ? "expected a scenario, or --dir with the directory of a run to go on with"
                     : directory + " holds no run to go on with: expected a scenario"};
  if (!has_task) return task_of(request, catalogue());
  Result<v1::Task> kept = read_task(directory);
  if (!kept.ok() && kept.error().code == ErrorCode::kCorruptPayload) {
    if (is_named)
      return task_of(request, catalogue());  // the hub compares its digest with that of the run
    Error error = std::move(kept).error();
    error.message += "; name the scenario with the same settings, recipe and seed again to go on";
    return error;
  }
  if (!kept.ok()) return kept.error();
  if (is_named) {
    Result<v1::Task> task = task_of(request, catalogue());
    const auto run = Journal::read_run(directory);
    if (!task.ok() || (run.ok() && !*run)) return task;  // nobody has joined it
    if (task->scenario_name() != kept->scenario_name())
      return other(directory, "the scenario", kept->scenario_name(), task->scenario_name());
    if (task->scenario() != kept->scenario()) return other_scenario(directory, *kept, *task);
    request.recipe = task->recipe();
  }
  LONGHAUL_TRY(check_same_settings(directory, *kept, request.settings, is_named));
  if (!request.recipe.empty() && request.recipe != kept->recipe())
    return other(directory, "the recipe", kept->recipe(), request.recipe);
  if ((is_named || seed) && request.seed != kept->seed())
    return other(directory, "the seed", std::to_string(kept->seed()), std::to_string(request.seed));
  return kept;
}

}  // namespace longhaul::apps
