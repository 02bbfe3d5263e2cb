// The output of `train` while it runs: events for programs, or lines for people.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/log.h"
#include "longhaul/base/repeat_filter.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/sync/replica.h"
#include "longhaul/sync/step_rate.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul::apps {

class TrainNews {
 public:
  // `is_json`: events on standard output; else lines on standard error. `clock` outlives it.
  TrainNews(bool is_json, LogLevel level, std::uint64_t steps, const Clock& clock);

  void started(std::size_t slot, std::uint64_t step, std::size_t threads, bool is_resumed);
  void step(const StepFacts& facts);
  void evaluation(const Score& score);
  void link(const LinkNews& news);
  void replaced(const Replaced& replaced);
  void checkpoint(const Result<std::uint64_t>& outcome, const std::filesystem::path& file) const;
  // Where a replica stands when it ends.
  struct Ending {
    std::uint64_t steps = 0;   // that the model has done
    std::string checkpoint{};  // empty: none
    // For people: what to do with the model; before the last step, the command to go on with.
    std::string next{};
    FinishCause cause = FinishCause::kSteps;
    std::string digest{};
    std::size_t late_steps = 0;
    std::size_t reconnections = 0;
    std::size_t differing_updates = 0;
    std::size_t non_finite_steps = 0;
  };
  // Before the last step: only the first three count.
  void stopped(const Ending& rest) const;
  void interrupted(const Ending& rest) const;
  // The end of the run for this replica: an event, or a table on standard output.
  void finished(const Ending& ending) const;
  // For programs only.
  void event(const std::string& name, const nlohmann::ordered_json& fields) const {
    if (is_json_) print_event(name, fields);
  }
  void note(const std::string& what) const {
    if (!is_json_) log_.info(what);
  }

  void warn(const std::string& what) const { log_.warning(what); }

  // Since the start, as all times of events.
  [[nodiscard]] nlohmann::ordered_json time_or_null(const std::optional<TimePoint>& time) const;
  [[nodiscard]] double time_s() const { return Seconds(clock_.now() - start_).count(); }

 private:
  [[nodiscard]] nlohmann::ordered_json rounds_json(const std::vector<MergedRound>& merged) const;
  // Writes at most a few lines of a kind in a minute.
  void write_seldom(LogLevel level, const std::string& kind, const std::string& line);
  [[nodiscard]] std::string way_on(const Ending& rest) const;

  bool is_json_;
  bool has_started_ = false;
  std::uint64_t steps_;
  const Clock& clock_;
  Log log_;
  RepeatFilter repeats_;
  TimePoint start_;
  std::uint64_t first_step_ = 0;
  StepRate rate_;
  std::optional<Evaluation> evaluation_;  // the last one
  // Since the last line.
  TimePoint since_;
  Seconds computing_{};
  Seconds waiting_{};
};

}  // namespace longhaul::apps
