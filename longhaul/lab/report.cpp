#include "longhaul/lab/report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "longhaul/lab/embedded.h"
#include "longhaul/lab/report_table.h"
#include "longhaul/lab/summary.h"

namespace longhaul::lab {
namespace {

using Json = nlohmann::ordered_json;

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

Json curve_of(const RunResult& run) {
  Json curve = Json::array();
  for (const EvalPoint& point : run.evaluations)
    // What is not finite is written as null.
    curve.push_back({point.step, point.time.count(), point.loss, point.accuracy});
  return curve;
}

Json timeline_of(const RunResult& run) {
  Json spans = Json::array();
  for (const Span& span : run.timeline)
    spans.push_back({span.replica, static_cast<int>(span.activity), span.begin.count(),
                     span.end.count(), span.step});
  return spans;
}

Json group_of(const Summary& summary, const std::vector<RunResult>& runs) {
  Json curves = Json::array();
  for (const std::size_t run : summary.runs) curves.push_back(curve_of(runs[run]));
  return {{"name", display_name(summary)},
          {"bytes_up", summary.bytes_up ? summary.bytes_up->median : 0},
          {"bytes_down", summary.bytes_down ? summary.bytes_down->median : 0},
          {"runs", std::move(curves)},
          {"timeline", timeline_of(runs[summary.runs.front()])}};
}

// JSON inside a script element: no "<" may end it early.
std::string page_data(const Scenario& scenario, const std::vector<Summary>& summaries,
                      const std::vector<RunResult>& runs) {
  Json groups = Json::array();
  for (const Summary& summary : summaries) groups.push_back(group_of(summary, runs));
  const Json data{
      {"target", {{"metric", scenario.target.metric}, {"value", scenario.target.value}}},
      {"groups", std::move(groups)}};
  std::string out;
  for (const char c : data.dump(-1, ' ', true, Json::error_handler_t::replace))
    out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

std::string note_of(const Scenario& scenario, const std::vector<RunResult>& runs,
                    const std::vector<Summary>& summaries) {
  std::size_t seeds = 0;
  for (const Summary& summary : summaries) seeds = std::max(seeds, summary.runs.size());
  std::string note = "The target is reached when the mean of three evaluations in a row crosses " +
                     scenario.target.metric + ' ' + short_number(scenario.target.value) +
                     ". Times are virtual: real gradients, modelled links.";
  if (seeds > 1) note += " Medians over " + std::to_string(seeds) + " seeds, least and most below.";
  if (runs.empty()) note = "No run has finished.";
  return note;
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
                        std::string_view version) {
  const std::vector<Summary> summaries = summarise(scenario.target, runs);
  return filled(embedded::report_html(),
                {{"title", html_escaped(scenario.title.empty() ? scenario.name : scenario.title)},
                 {"name", html_escaped(scenario.name)},
                 {"facts", facts_html(scenario, runs.empty() ? 0 : runs.front().parameters)},
                 {"note", html_escaped(note_of(scenario, runs, summaries))},
                 {"table", table_html(scenario.target, summaries, runs)},
                 {"plans", plans_html(summaries, runs)},
                 {"version", html_escaped(version)},
                 {"style", std::string(embedded::report_css())},
                 {"data", page_data(scenario, summaries, runs)},
                 {"chart_js", std::string(embedded::chart_min_js())},
                 {"script", std::string(embedded::report_js())}});
}

}  // namespace longhaul::lab
