// The decisions of planners in the report: what was chosen, when, and why.
#include <algorithm>
#include <cctype>
#include <utility>

#include "longhaul/lab/report.h"
#include "longhaul/lab/report_parts.h"

namespace longhaul::lab {
namespace {

constexpr std::size_t kMostRows = 30;

std::string cells(const PlanPoint& point) {
  const auto cell = [](const std::string& text) { return "<td>" + html_escaped(text) + "</td>"; };
  std::string row =
      "<tr>" + cell(std::to_string(point.step)) + cell(spaced(time_text(point.time.count())));
  for (const PlanCell& knob : plan_cells(point.plan)) row += cell(knob.value);
  return row + cell(spaced(time_text(point.predicted_step_time.count()))) +
         "<td class=\"reason\">" + html_escaped(point.reason) + "</td></tr>";
}

std::vector<std::string> columns() {
  std::vector<std::string> names{"Step", "Time"};
  for (PlanCell& knob : plan_cells({})) {
    knob.name.front() = static_cast<char>(std::toupper(knob.name.front()));
    names.push_back(std::move(knob.name));
  }
  names.insert(names.end(), {"Predicted step", "Because"});
  return names;
}

std::string table_of(const std::string& name, const RunResult& run) {
  std::string html = "<h3>" + html_escaped(name + ", seed " + std::to_string(run.seed)) +
                     "</h3><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                     "aria-label=\"Decisions\"><table class=\"plans\"><thead><tr>";
  for (const std::string& column : columns()) html += "<th scope=\"col\">" + column + "</th>";
  html += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < std::min(run.plans.size(), kMostRows); ++i)
    html += cells(run.plans[i]);
  html += "</tbody></table></div>";
  if (run.plans.size() > kMostRows)
    html += "<p class=\"note\">and " + std::to_string(run.plans.size() - kMostRows) +
            " more in results.json</p>";
  return html;
}

}  // namespace

std::string plans_html(const std::vector<Summary>& summaries, const std::vector<RunResult>& runs) {
  std::string tables;
  for (const Summary& summary : summaries) {
    const RunResult& run = runs[summary.runs.front()];
    if (!run.plans.empty()) tables += table_of(display_name(summary), run);
  }
  if (tables.empty()) return "";
  return "<section id=\"decisions\"><h2>Decisions</h2><p class=\"note\">What planners chose from "
         "what they measured. A plan is announced with the mean of the step it stands "
         "beside.</p>" +
         tables + "</section>";
}

}  // namespace longhaul::lab
