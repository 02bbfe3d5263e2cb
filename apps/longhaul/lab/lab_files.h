// The files that a lab leaves in its directory: events.jsonl while it runs, and what is drawn from
// it at the end.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/job/scenario.h"
#include "longhaul/lab/oracle.h"
#include "longhaul/lab/results.h"

namespace longhaul::apps {

class LabFiles {
 public:
  // Makes the directory; what an earlier lab left there stays until start(). `study` tells studies
  // apart whose runs cannot be compared.
  static Result<LabFiles> open(const std::filesystem::path& directory,
                               const std::string& study = {});
  // Goes on with what an earlier lab of that study left there: runs that it finished stay.
  static Result<LabFiles> resume(const std::filesystem::path& directory, const std::string& study);
  [[nodiscard]] const std::vector<lab::RunResult>& kept() const { return kept_; }

  // Starts a new events.jsonl with what is kept. To be called when nothing but training can fail
  // any more, before the first run; further calls do nothing.
  Status start();
  // Precondition: started.
  Status add(const lab::RunResult& run);

  // Writes results.json, results.csv and report.html from events.jsonl, unless there is no run and
  // none has begun. The runs, grouped by recipe. `is_judged`: by an oracle.
  Result<std::vector<lab::RunResult>> finish(const Scenario& scenario, bool is_judged = false);

  [[nodiscard]] std::filesystem::path report() const { return directory_ / "report.html"; }
  // The checkpoint of the run that was interrupted.
  [[nodiscard]] std::filesystem::path checkpoint() const {
    return directory_ / "checkpoint.safetensors";
  }

 private:
  LabFiles(std::filesystem::path directory, std::string study, std::vector<lab::RunResult> kept)
      : directory_(std::move(directory)), study_(std::move(study)), kept_(std::move(kept)) {}

  std::filesystem::path directory_;
  std::string study_;
  std::vector<lab::RunResult> kept_;
  std::ofstream events_;  // open when started
};

// The scenario of a directory that an earlier lab has left; empty: it does not say.
std::string scenario_of(const std::filesystem::path& directory);
// The runs of a directory that an earlier lab has left.
Result<std::vector<lab::RunResult>> read_runs(const std::filesystem::path& directory);

// The output of --json: results.json without the curves, and the verdict if one was asked for.
std::string lab_json(const Scenario& scenario, const std::vector<lab::RunResult>& runs,
                     const std::optional<lab::Verdict>& verdict);

}  // namespace longhaul::apps
