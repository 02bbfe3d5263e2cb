// How summaries read: the words of the closing table and of the report.
#include <algorithm>
#include <cmath>

#include "longhaul/base/units.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {
namespace {

using Row = std::vector<std::string>;

// The length of a UTF-8 text in characters.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? row[i] + padding : "  " + padding + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string median_text(const std::optional<Spread>& spread, std::string (*show)(double)) {
  return spread ? show(spread->median) : "-";
}

Row row_of(const Summary& summary, const std::vector<Summary>& all, const TargetOptions& target) {
  const auto bytes = [](double value) {
    return bytes_text(static_cast<std::uint64_t>(std::llround(value)));
  };
  const std::optional<double> faster = speed_up(summary, all);
  std::string name = summary.recipe;
  if (!summary.settings.empty()) name += "  " + summary.settings + (summary.is_best ? " *" : "");
  return {name,
          target_text(summary, target),
          faster ? formatted("%.2fx", *faster) : "-",
          median_text(summary.steps_to_target, [](double v) { return formatted("%.0f", v); }),
          median_text(summary.final_accuracy, [](double v) { return formatted("%.4f", v); }),
          median_text(summary.final_loss, [](double v) { return formatted("%.4f", v); }),
          median_text(summary.step_time_s, time_text),
          median_text(summary.computing, [](double v) { return formatted("%.1f%%", 100 * v); }),
          median_text(summary.bytes_up, bytes),
          median_text(summary.bytes_down, bytes)};
}

}  // namespace

std::string time_text(double seconds) {
  if (!std::isfinite(seconds)) return "never";
  if (seconds < 119.5) return to_string(Seconds(seconds));
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  const std::uint64_t hours = whole / 3600;
  if (hours > 0) return std::to_string(hours) + "h " + std::to_string(whole % 3600 / 60) + "min";
  return std::to_string(whole / 60) + "min " + std::to_string(whole % 60) + 's';
}

std::string target_text(const Summary& summary, const TargetOptions& target) {
  const std::size_t runs = summary.runs.size();
  const auto of_runs = [runs](std::size_t count, const std::string& what) {
    return runs == 1 ? what : what + " in " + std::to_string(count) + " of " + std::to_string(runs);
  };
  if (summary.time_to_target_s) {
    const Spread& time = *summary.time_to_target_s;
    if (runs == 1) return time_text(time.median);
    return time_text(time.median) + " (" + time_text(time.least) + " to " + time_text(time.most) +
           ')';
  }
  if (2 * summary.diverged >= runs) return of_runs(summary.diverged, "diverged");
  const std::string best = summary.best_value ? " (best " + name_of(target.metric) + ' ' +
                                                    formatted("%.4g", *summary.best_value) + ')'
                                              : "";
  if (2 * summary.interrupted >= runs) return of_runs(summary.interrupted, "interrupted") + best;
  return of_runs(runs - summary.reached, "not reached") + best;
}

std::string summary_table(const Scenario& scenario, const std::vector<RunResult>& runs) {
  const std::vector<Summary> all = summarise(scenario.target, runs);
  std::vector<Row> rows{{"recipe", "time to target", "speed-up", "steps", "accuracy", "loss",
                         "step time", "computing", "sent up", "sent down"}};
  bool is_search = false;
  std::size_t seeds = 0;
  for (const Summary& summary : all) {
    rows.push_back(row_of(summary, all, scenario.target));
    is_search = is_search || !summary.settings.empty();
    seeds = std::max(seeds, summary.runs.size());
  }
  std::string text = scenario.name + ": target " + name_of(scenario.target.metric) + ' ' +
                     formatted("%.4g", scenario.target.value) + ", times are " +
                     (is_rehearsal(runs) ? "real, links are emulated" : "virtual");
  if (seeds > 1) text += ", medians over " + std::to_string(seeds) + " seeds (least to most)";
  text += "\n\n" + aligned(rows);
  if (is_search) text += "\n* the best of this recipe's settings\n";
  return text;
}

}  // namespace longhaul::lab
