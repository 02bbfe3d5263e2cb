#include "apps/longhaul/lab/lab_files.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/file.h"
#include "longhaul/lab/report.h"
#include "longhaul/lab/results_json.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {
namespace {

constexpr const char* kEvents = "events.jsonl";
constexpr const char* kResults = "results.json";
constexpr const char* kCsv = "results.csv";
constexpr const char* kStudy = "study";

Error cannot_write(const std::filesystem::path& path) {
  return Error{ErrorCode::kIo, path.string() + ": cannot write this file"};
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) return cannot_write(path);
  return Done{};
}

// Recipes in the order of their first run, each with all of its runs.
void group_by_recipe(std::vector<lab::RunResult>& runs) {
  std::map<std::string, std::size_t> order;
  for (const lab::RunResult& run : runs) order.emplace(run.recipe, order.size());
  std::ranges::stable_sort(runs, {},
                           [&order](const lab::RunResult& run) { return order.at(run.recipe); });
}

std::string dumped(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// A word that a shell takes as it is, quoted if it must be.
std::string shell_word(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_=.,:/+@%").find(char(c)) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

// How this process was called, for who wants to do it again. longhaul-torch has the words of
// longhaul.
std::string command_line() {
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  std::string command = "longhaul";
  std::string word;
  std::getline(words, word, '\0');  // the program
  while (std::getline(words, word, '\0')) command += ' ' + shell_word(word);
  return command;
}

}  // namespace

Result<LabFiles> LabFiles::open(const std::filesystem::path& directory, const std::string& study) {
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) return Error{ErrorCode::kIo, directory.string() + ": " + failure.message()};
  if (::access(directory.c_str(), W_OK) != 0)
    return Error{ErrorCode::kIo, directory.string() + ": cannot write into this directory"};
  return LabFiles(directory, study, {});
}

Result<LabFiles> LabFiles::resume(const std::filesystem::path& directory,
                                  const std::string& study) {
  const std::filesystem::path path = directory / kEvents;
  std::ifstream events(path, std::ios::binary);
  if (!events) return open(directory, study);
  const Result<std::vector<nlohmann::ordered_json>> all = read_events(events);
  if (!all.ok()) return Error(all.error()).within(path.string());
  const bool is_same = !all->empty() && all->front().value("event", "") == kStudy &&
                       all->front().value("digest", "") == study;
  if (!is_same)
    return Error{ErrorCode::kMismatch,
                 "--resume: " + path.string() + " is of another scenario or of other settings"};
  std::vector<lab::RunResult> runs = LONGHAUL_TRY(read_runs(directory));
  std::erase_if(
      runs, [](const lab::RunResult& run) { return run.status == lab::RunStatus::kInterrupted; });
  return LabFiles(directory, study, std::move(runs));
}

// The old file stays until the new one holds what is kept.
Status LabFiles::start() {
  if (events_.is_open()) return Done{};
  std::ostringstream text;
  write_event(text, kStudy, {{"digest", study_}});
  for (const lab::RunResult& run : kept_) write_run_events(text, run);
  const std::string events = text.str();
  const std::filesystem::path path = directory_ / kEvents;
  LONGHAUL_TRY(write_file_atomically(path, std::as_bytes(std::span(events))));
  events_.open(path, std::ios::binary | std::ios::app);
  if (!events_) return cannot_write(path);
  return Done{};
}

Status LabFiles::add(const lab::RunResult& run) {
  LONGHAUL_CHECK(events_.is_open());
  write_run_events(events_, run);
  if (!events_) return cannot_write(directory_ / kEvents);
  return Done{};
}

Result<std::vector<lab::RunResult>> LabFiles::finish(const Scenario& scenario, bool is_judged) {
  if (!events_.is_open() && kept_.empty()) return kept_;
  LONGHAUL_TRY(start());
  std::vector<lab::RunResult> runs = LONGHAUL_TRY(read_runs(directory_));
  group_by_recipe(runs);
  lab::ReportOptions options{.version = LONGHAUL_VERSION, .command = command_line()};
  nlohmann::ordered_json json = results_json_with_curves(scenario, runs);
  if (is_judged) {
    options.verdict = lab::verdict_of(runs);
    json["oracle"] = verdict_json(*options.verdict);
  }
  json["version"] = options.version;
  LONGHAUL_TRY(write_file(directory_ / kResults, dumped(json, 1) + '\n'));
  LONGHAUL_TRY(write_file(directory_ / kCsv, results_csv(scenario, runs)));
  const std::string page = report_html(scenario, runs, options);
  LONGHAUL_TRY(write_file(report(), page));
  return runs;
}

std::string scenario_of(const std::filesystem::path& directory) {
  std::ifstream file(directory / kResults, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  const auto found = json.is_object() ? json.find("scenario") : json.end();
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

Result<std::vector<lab::RunResult>> read_runs(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kEvents;
  std::ifstream events(path, std::ios::binary);
  if (!events) return Error{ErrorCode::kNotFound, path.string() + ": cannot read this file"};
  Result<std::vector<lab::RunResult>> runs = lab::read_run_events(events);
  if (!runs.ok()) return std::move(runs).error().within(path.string());
  return runs;
}

std::string lab_json(const Scenario& scenario, const std::vector<lab::RunResult>& runs,
                     const std::optional<lab::Verdict>& verdict) {
  nlohmann::ordered_json json = results_json(scenario, runs);
  if (verdict) json["oracle"] = verdict_json(*verdict);
  return dumped(json, 2);
}

}  // namespace longhaul::apps
