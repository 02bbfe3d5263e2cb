// One run of a rehearsal: a hub, a relay and a replica for each link of the scenario, and an
// evaluator, as real processes on this machine.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/longhaul/child.h"
#include "apps/longhaul/job_options.h"
#include "longhaul/lab/results.h"
#include "longhaul/link/relay.h"

namespace longhaul::apps {

// What people see while it runs.
struct RehearsalView {
  std::string recipe;
  std::optional<Seconds> predicted_step_time;
  std::optional<double> metric;   // of the target, smoothed; nothing before three evaluations
  nlohmann::ordered_json status;  // the hub's last
  double time_s = 0;              // since the start
};

class Rehearsal {
 public:
  struct Setup {
    TaskRequest task;
    std::filesystem::path directory;  // for logs and copies of the model; made, and kept
  };
  explicit Rehearsal(Setup setup) : setup_(std::move(setup)) {}

  // Runs to its end. `show` is called a few times a second; false ends it early.
  Result<lab::RunResult> run(const std::function<bool(const RehearsalView&)>& show);

 private:
  Status start();
  Status start_replicas();
  Status watch(const std::function<bool(const RehearsalView&)>& show);
  Status read_all();
  Status wait_for(const std::string& what, const std::function<bool()>& is_so);
  Status check_children();
  void on_hub(const nlohmann::ordered_json& event);
  void on_replica(std::size_t slot, const nlohmann::ordered_json& event);
  void on_evaluator(const nlohmann::ordered_json& event);
  [[nodiscard]] std::optional<Seconds> predicted_step_time() const;
  void end_if_done();
  Result<lab::RunResult> result();

  Setup setup_;
  v1::Task task_;
  std::optional<lab::Job> job_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::optional<Child> hub_;
  std::optional<Child> evaluator_;
  std::deque<Child> replicas_;
  int port_ = 0;
  std::size_t parameters_ = 0;
  std::size_t starts_ = 0;
  bool is_ending_ = false;
  bool is_final_scored_ = false;
  std::map<std::size_t, lab::StepPoint> steps_;
  std::map<std::size_t, std::string> digests_;  // by slot
  std::size_t late_steps_ = 0;
  RehearsalView view_;
  lab::RunResult run_;
};

}  // namespace longhaul::apps
