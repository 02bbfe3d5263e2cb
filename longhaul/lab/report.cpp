#include "longhaul/lab/report.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "longhaul/lab/embedded.h"
#include "longhaul/lab/report_parts.h"
#include "longhaul/lab/results_json.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {
namespace {

// Replaces each {{name}} once; what is put in is not looked at again.
std::string filled(std::string_view page, const std::map<std::string, std::string>& parts) {
  std::string out;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    out += page.substr(0, open);
    if (close == std::string_view::npos) return out;
    out += parts.at(std::string(page.substr(open + 2, close - open - 2)));
    page.remove_prefix(close + 2);
  }
}

std::string note_of(const Scenario& scenario, const std::vector<RunResult>& runs,
                    const std::vector<Summary>& summaries) {
  if (runs.empty()) return "No run has finished.";
  std::size_t seeds = 0;
  for (const Summary& summary : summaries) seeds = std::max(seeds, summary.runs.size());
  std::string note = "The target is reached when the mean of three evaluations in a row crosses " +
                     name_of(scenario.target.metric) + ' ' + short_number(scenario.target.value) +
                     '.';
  if (seeds > 1) note += " Medians over " + std::to_string(seeds) + " seeds, least and most below.";
  return note;
}

// All runs in a link, which needs no file beside the page.
std::string csv_address(const Scenario& scenario, const std::vector<RunResult>& runs) {
  std::string address = "data:text/csv;charset=utf-8,";
  for (const char c : results_csv(scenario, runs)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '_' || c == ',')
      address += c;
    else
      address += formatted("%%%02X", byte);
  }
  return address;
}

std::string script() {
  std::string all;
  for (const std::string_view part :
       {embedded::report_base_js(), embedded::report_curves_js(), embedded::report_why_js(),
        embedded::report_schedule_js(), embedded::report_timeline_js(), embedded::report_js()})
    all.append(part).append("\n");
  return all;
}

// An oracle's fixed plans get no rows, except for the best one.
std::vector<RunResult> shown_runs(const std::vector<RunResult>& runs,
                                  const std::optional<Verdict>& verdict) {
  std::vector<RunResult> shown;
  for (const RunResult& run : runs) {
    if (!verdict || !is_fixed_plan(run.recipe) || run.recipe == verdict->best_fixed.recipe)
      shown.push_back(run);
  }
  return shown;
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string report_html(const Scenario& scenario, const std::vector<RunResult>& runs,
                        const ReportOptions& options) {
  const std::vector<RunResult> shown = shown_runs(runs, options.verdict);
  const std::vector<Summary> summaries = summarise(scenario.target, shown);
  const bool is_real = is_rehearsal(runs);
  return filled(embedded::report_html(),
                {{"title", html_escaped(scenario.title.empty() ? scenario.name : scenario.title)},
                 {"kind", is_real ? "rehearsal" : "lab"},
                 {"name", html_escaped(scenario.name)},
                 {"clock", clock_html(is_real)},
                 {"facts", facts_html(scenario, runs.empty() ? 0 : runs.front().parameters)},
                 {"note", html_escaped(note_of(scenario, runs, summaries))},
                 {"table", table_html(scenario.target, summaries, shown)},
                 {"prediction", prediction_html(summaries, shown)},
                 {"oracle", oracle_html(options.verdict)},
                 {"plans", plans_html(summaries, shown)},
                 {"glossary", glossary_html()},
                 {"command", html_escaped(options.command)},
                 {"csv", html_escaped(csv_address(scenario, runs))},
                 {"version", html_escaped(options.version)},
                 {"style", std::string(embedded::report_css())},
                 {"data", page_data(scenario, summaries, shown, runs, options.verdict)},
                 {"chart_js", std::string(embedded::chart_min_js())},
                 {"script", script()}});
}

}  // namespace longhaul::lab
