#include "longhaul/lab/report_table.h"

#include <algorithm>
#include <cmath>

#include "longhaul/base/units.h"
#include "longhaul/lab/report.h"

namespace longhaul::lab {
namespace {

std::string fact(const std::string& name, const std::string& value) {
  return "<div><dt>" + html_escaped(name) + "</dt><dd>" + html_escaped(value) + "</dd></div>";
}

// "5.6mbit", or "5.6mbit to 20mbit" where replicas differ.
template <typename Value, typename Show>
std::string range_text(const std::vector<ReplicaSettings>& replicas, Value value, Show show) {
  double least = value(replicas.front());
  double most = least;
  for (const ReplicaSettings& replica : replicas) {
    least = std::min(least, value(replica));
    most = std::max(most, value(replica));
  }
  return least == most ? show(least) : show(least) + " to " + show(most);
}

bool is_varying(const std::vector<ReplicaSettings>& replicas) {
  return std::ranges::any_of(replicas, [](const ReplicaSettings& replica) {
    return !replica.link.trace.empty() || replica.link.markov_spread > 0;
  });
}

// α and β of PAPERS: the share of a dense update that a step carries up, and the loop latency in
// steps. Of the first replica.
std::string alpha_beta(const Scenario& scenario, std::size_t parameters) {
  const ReplicaSettings& first = scenario.replicas.front();
  const double dense_bytes = 4.0 * static_cast<double>(parameters);
  const double carried = first.link.up.bytes_per_second * first.step_time.count();
  return "α " + formatted("%.3g", carried / dense_bytes) + ", β " +
         formatted("%.3g", 2 * first.link.latency / first.step_time);
}

std::string cell(const std::optional<Spread>& spread, std::size_t runs,
                 std::string (*show)(double)) {
  if (!spread) return "<td>–</td>";
  std::string text = html_escaped(show(spread->median));
  if (runs > 1 && show(spread->least) != show(spread->most))
    text += "<small>" + html_escaped(show(spread->least) + " – " + show(spread->most)) + "</small>";
  return "<td>" + text + "</td>";
}

std::string efficiency_cell(const std::optional<Spread>& efficiency) {
  if (!efficiency) return "<td>–</td>";
  const double percent = 100 * std::clamp(efficiency->median, 0.0, 1.0);
  return "<td>" + formatted("%.1f %%", percent) + R"(<span class="meter"><i style="width:)" +
         formatted("%.0f%%", percent) + R"("></i></span></td>)";
}

std::string bytes_cell(const Summary& summary) {
  const auto text = [](const std::optional<Spread>& bytes) {
    return bytes ? to_string(ByteCount{static_cast<std::uint64_t>(std::llround(bytes->median))})
                 : std::string("–");
  };
  return "<td>" + html_escaped(text(summary.bytes_up)) + " up<small>" +
         html_escaped(text(summary.bytes_down)) + " down</small></td>";
}

std::string target_cell(const Summary& summary, const TargetSettings& target) {
  const std::string text = html_escaped(target_text(summary, target));
  const std::size_t bracket = text.find(" (");
  const std::string body = bracket == std::string::npos
                               ? text
                               : text.substr(0, bracket) + "<small>" +
                                     text.substr(bracket + 2, text.size() - bracket - 3) +
                                     "</small>";
  return (summary.time_to_target_s ? "<td>" : "<td class=\"missed\">") + body + "</td>";
}

std::string plan_cell(const RunResult& run) {
  return "<td>" +
         html_escaped("δ " + formatted("%.3g", run.keep_ratio) + ", τ " +
                      std::to_string(run.delay_steps) +
                      (run.period_steps > 1 ? ", H " + std::to_string(run.period_steps) : "") +
                      (run.merge == "optimizer" ? "" : ", " + run.merge)) +
         "<small>" + html_escaped(run.codec) + "</small></td>";
}

std::string row_html(const Summary& summary, std::size_t index, const TargetSettings& target,
                     const std::vector<Summary>& all, const std::vector<RunResult>& runs) {
  const std::size_t seeds = summary.runs.size();
  const RunResult& first = runs[summary.runs.front()];
  const std::optional<double> faster = speed_up(summary, all);
  const auto four = [](double value) { return formatted("%.4f", value); };
  std::string row = summary.is_best ? "<tr>" : "<tr class=\"dimmed\">";
  row += R"(<th scope="row"><span class="swatch" style="--swatch:var(--c)" +
         std::to_string(index % 8) + ")\"></span>" + html_escaped(display_name(summary)) + "</th>";
  row += target_cell(summary, target);
  row += "<td>" + (faster ? formatted("%.2f×", *faster) : "–") + "</td>";
  row += cell(summary.steps_to_target, seeds, [](double v) {
    return std::isfinite(v) ? formatted("%.0f", v) : std::string("never");
  });
  row += cell(summary.final_accuracy, seeds, four);
  row += cell(summary.final_loss, seeds, four);
  row += cell(summary.step_time_s, seeds, [](double v) { return to_string(Seconds(v)); });
  row += efficiency_cell(summary.efficiency);
  row += bytes_cell(summary);
  row += plan_cell(first) + "<td>" + formatted("%.4g", first.lr) + "</td>";
  return row + "</tr>";
}

}  // namespace

std::string short_number(double value) { return formatted("%.4g", value); }

std::string display_name(const Summary& summary) {
  return summary.settings.empty() ? summary.recipe : summary.recipe + ", " + summary.settings;
}

std::string facts_html(const Scenario& scenario, std::size_t parameters) {
  const std::vector<ReplicaSettings>& replicas = scenario.replicas;
  std::string model = scenario.model.name;
  if (parameters > 0) model += ", " + std::to_string(parameters) + " parameters";
  std::string data = scenario.data.kind + ", " + scenario.data.split;
  if (scenario.data.split == "dirichlet") data += '(' + short_number(scenario.data.dirichlet) + ')';
  std::string facts = fact("Model", model) + fact("Data", data);
  if (replicas.empty()) return facts;
  const std::string varying = is_varying(replicas) ? ", varying" : "";
  const auto rate = [](double value) { return to_string(Bandwidth{value}); };
  const auto time = [](double value) { return to_string(Seconds(value)); };
  const auto range = [&](auto value, auto show) { return range_text(replicas, value, show); };
  using Replica = const ReplicaSettings&;
  facts += fact("Replicas", std::to_string(replicas.size()));
  facts += fact("Up", range([](Replica r) { return r.link.up.bytes_per_second; }, rate) + varying);
  facts +=
      fact("Down", range([](Replica r) { return r.link.down.bytes_per_second; }, rate) + varying);
  facts += fact("Latency, one way", range([](Replica r) { return r.link.latency.count(); }, time));
  facts +=
      fact("Compute time of a step", range([](Replica r) { return r.step_time.count(); }, time));
  if (parameters > 0) facts += fact("Link against model", alpha_beta(scenario, parameters));
  return facts;
}

std::string table_html(const TargetSettings& target, const std::vector<Summary>& summaries,
                       const std::vector<RunResult>& runs) {
  std::string html = "<table id=\"results\"><thead><tr>";
  for (const char* name :
       {"Recipe", "Time to target", "Against<br>d-sgd", "Steps to<br>target", "Final<br>accuracy",
        "Final<br>loss", "Step time", "Computing", "Sent", "Plan", "Learning<br>rate"})
    html += std::string("<th scope=\"col\">") + name + "</th>";
  html += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < summaries.size(); ++i)
    html += row_html(summaries[i], i, target, summaries, runs);
  return html + "</tbody></table>";
}

}  // namespace longhaul::lab
