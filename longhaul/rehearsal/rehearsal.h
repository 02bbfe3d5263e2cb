// One run of a rehearsal, as real processes on this machine: a hub, an evaluator, and a relay and a
// replica for each link. Faults are injected on request.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/job/task.h"
#include "longhaul/lab/results.h"
#include "longhaul/lab/timekeeper.h"
#include "longhaul/link/relay.h"
#include "longhaul/rehearsal/child.h"
#include "longhaul/rehearsal/faults.h"
#include "longhaul/rehearsal/round_audit.h"
#include "longhaul/sync/timed_exchange.h"

namespace longhaul {

// The view that people have while it runs.
struct RehearsalView {
  std::string recipe;
  std::optional<Seconds> predicted_step_time;
  std::optional<double> metric;   // of the target, smoothed; nothing before three evaluations
  nlohmann::ordered_json status;  // the hub's last
  double time_s = 0;              // since the start
  std::size_t faults = 0;         // that have begun
  std::string fault;              // the last one
};

// One rehearsal, from the first process to the last.
class Rehearsal {
 public:
  struct Options {
    TaskOptions task;
    Catalogue catalogue;
    std::filesystem::path programs;   // directory of longhaul and longhaul-torch
    std::filesystem::path directory;  // for logs; made, and kept
    FaultOptions faults;
    bool keeps_books = false;  // in the directory, for tests/e2e/books.py
    std::string log_level = "info";
  };
  // `show` is called a few times a second; false ends the run early.
  using Show = std::function<bool(const RehearsalView&)>;
  Rehearsal(Options options, Show show) : options_(std::move(options)), show_(std::move(show)) {}
  // Ends every process, and removes all but logs and books.
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  // Runs to its end. kClosed: it was interrupted before there was anything to tell.
  Result<lab::RunResult> run();
  // After it: what happened, in one line.
  [[nodiscard]] std::string fault_report() const;

 private:
  // When a replica did what in a step, on the clock of the run.
  struct StepTimes {
    Seconds computed{};  // its gradient was there
    Seconds computing{};
    std::vector<MergedRound> rounds;  // since the step before; TimePoint{} is the start of the run
  };
  // A replica of the scenario, whichever process plays it.
  struct Seat {
    std::unique_ptr<Relay> relay;
    std::optional<Child> process;
    bool has_started = false;
    // The offset of its process's clock against that of the run, which starts with the first
    // replica.
    Seconds offset{};
    std::map<std::size_t, StepTimes> times;  // by step
    std::map<RoundId, Seconds> arrived;      // its updates, at the hub
    std::string digest;                      // of the model at the end; empty: it has not finished
    std::size_t failed_starts = 0;
    std::size_t not_finite = 0;  // losses in a row
  };

  // rehearsal.cpp: processes, and the course of the run.
  Status start();
  Status start_hub();
  Status start_evaluator();
  Status start_seats();
  Status start_replica(std::size_t slot);
  Status wait_for(const std::string& what, const std::function<bool()>& is_so);
  Status watch();
  Status read_all();
  Status check_children();
  Status check_replica(std::size_t slot);
  [[nodiscard]] Status look_at(Child& child, const std::string& name, bool may_end) const;
  void end_if_done();
  [[nodiscard]] Seconds time() const;

  // rehearsal_faults.cpp
  Status begin(const Fault& fault);
  Status end(const Fault& fault);

  // rehearsal_events.cpp: what the processes tell, and what comes of it.
  void read(Child& child, const std::function<void(const nlohmann::ordered_json&)>& handler);
  void on_hub(const nlohmann::ordered_json& event);
  void on_replica(std::size_t slot, const nlohmann::ordered_json& event);
  void on_step(Seat& seat, const nlohmann::ordered_json& event);
  void on_stamp(const Seat& seat, const nlohmann::ordered_json& event);
  void on_evaluator(const nlohmann::ordered_json& event);

  // rehearsal_times.cpp: when it happened, on one clock.
  void note_start(Seat& seat, const nlohmann::ordered_json& event);
  static void note_step(Seat& seat, const nlohmann::ordered_json& event);
  void note_round(const nlohmann::ordered_json& event);
  void note_rates();
  void fill_in_transfers(std::size_t slot, Seconds latency, lab::Timekeeper& keeper);
  static void fill_in_step(std::size_t slot, std::size_t step, const StepTimes& times,
                           lab::Timekeeper& keeper);
  void fill_in_timeline();
  [[nodiscard]] bool has_finished() const;
  [[nodiscard]] Status check_end() const;
  Result<lab::RunResult> result();

  Options options_;
  Show show_;
  v1::Task task_;
  std::optional<Job> job_;
  std::optional<Faults> faults_;
  std::optional<Child> hub_;
  std::optional<Child> evaluator_;
  std::vector<Seat> seats_;
  int port_ = 0;
  bool is_listening_ = false;
  std::size_t parameters_ = 0;
  LayerTable layers_;
  std::optional<TimePoint> started_;
  bool is_ending_ = false;
  bool is_final_scored_ = false;
  bool was_heard_ = false;  // since the last look
  std::size_t last_stamp_ = 0;
  // By step: its end for the last replica, and the losses of all.
  std::map<std::size_t, Seconds> step_ends_;
  std::map<std::size_t, std::vector<double>> losses_;
  std::optional<double> zero_s_;       // the start of the run on this machine's steady clock
  std::map<RoundId, Seconds> closed_;  // rounds, by the hub
  RoundAudit audit_;
  std::ofstream rounds_;  // of the books
  std::size_t late_steps_ = 0;
  RehearsalView view_;
  lab::RunResult run_;
};

}  // namespace longhaul
