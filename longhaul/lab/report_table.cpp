#include "longhaul/lab/report_parts.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "longhaul/base/units.h"
#include "longhaul/lab/report.h"

namespace longhaul::lab {
namespace {

std::string fact(const std::string& name, const std::string& value) {
  return "<div><dt>" + term(name) + "</dt><dd>" + html_escaped(value) + "</dd></div>";
}

// "5.6mbit", or "5.6mbit to 20mbit" where replicas differ.
template <typename Value, typename Show>
std::string range_text(const std::vector<ReplicaOptions>& replicas, Value value, Show show) {
  double least = value(replicas.front());
  double most = least;
  for (const ReplicaOptions& replica : replicas) {
    least = std::min(least, value(replica));
    most = std::max(most, value(replica));
  }
  return least == most ? show(least) : show(least) + " to " + show(most);
}

bool is_varying(const std::vector<ReplicaOptions>& replicas) {
  return std::ranges::any_of(replicas, [](const ReplicaOptions& replica) {
    return !replica.link.trace.empty() || replica.link.markov_spread > 0;
  });
}

// The replica whose loop with a dense update is the longest, as the planner's reasons have it.
std::size_t slowest_of(const std::vector<ReplicaOptions>& replicas, double dense_bytes) {
  const auto loop = [&](const ReplicaOptions& replica) {
    const LinkOptions& link = replica.link;
    return replica.step_time.count() + 2 * link.latency.count() +
           dense_bytes * (1 / link.up.bytes_per_second + 1 / link.down.bytes_per_second);
  };
  const auto slowest = std::ranges::max_element(replicas, {}, loop);
  return static_cast<std::size_t>(slowest - replicas.begin());
}

// α and β: the share of a dense update that a step carries, and the round trip in steps. Both of
// the slowest replica, at the pace of the one that computes the longest: all wait for it.
std::string alpha_beta(const Scenario& scenario, std::size_t parameters) {
  const std::vector<ReplicaOptions>& replicas = scenario.replicas;
  const double dense_bytes = 4.0 * static_cast<double>(parameters);
  const std::size_t slowest = slowest_of(replicas, dense_bytes);
  const LinkOptions& link = replicas[slowest].link;
  Seconds step{};
  for (const ReplicaOptions& replica : replicas) step = std::max(step, replica.step_time);
  const double rate = std::min(link.up.bytes_per_second, link.down.bytes_per_second);
  const bool are_equal = std::ranges::all_of(replicas, [&](const ReplicaOptions& one) {
    return one.step_time == step && one.link.latency == link.latency && one.link.up == link.up &&
           one.link.down == link.down;
  });
  return "α " + formatted("%.3g", rate * step.count() / dense_bytes) + ", β " +
         formatted("%.3g", 2 * link.latency / step) +
         (are_equal ? "" : " (replica " + std::to_string(slowest) + ", the slowest)");
}

std::string cell(const std::optional<Spread>& spread, std::size_t runs,
                 std::string (*show)(double)) {
  if (!spread) return "<td>–</td>";
  std::string text = html_escaped(show(spread->median));
  if (runs > 1 && show(spread->least) != show(spread->most))
    text += "<small>" + html_escaped(show(spread->least) + " – " + show(spread->most)) + "</small>";
  return "<td>" + text + "</td>";
}

// The share of one replica, where the shares differ.
std::string shares_by_replica(const RunResult& run) {
  std::string text;
  double least = 1;
  double most = 0;
  for (const TimeSpent& one : run.spent) {
    const double share = one.total() > Seconds(0) ? one.computing / one.total() : 0;
    least = std::min(least, share);
    most = std::max(most, share);
    text += (text.empty() ? "" : " · ") + formatted("%.0f", 100 * share);
  }
  return most - least < 0.015 ? "" : text + " %";
}

std::string computing_cell(const std::optional<Spread>& computing, const RunResult& run) {
  if (!computing) return "<td>–</td>";
  const double percent = 100 * std::clamp(computing->median, 0.0, 1.0);
  const std::string by_replica = shares_by_replica(run);
  return "<td>" + formatted("%.1f %%", percent) + R"(<span class="meter"><i style="width:)" +
         formatted("%.0f%%", percent) + R"("></i></span>)" +
         (by_replica.empty() ? ""
                             : "<small title=\"by replica, from replica 0 on\">" +
                                   html_escaped(by_replica) + "</small>") +
         "</td>";
}

std::string bytes_cell(const Summary& summary) {
  const auto text = [](const std::optional<Spread>& bytes) {
    if (!bytes) return std::string("–");
    return spaced(bytes_text(static_cast<std::uint64_t>(std::llround(bytes->median))));
  };
  return "<td>" + html_escaped(text(summary.bytes_up)) + " up<small>" +
         html_escaped(text(summary.bytes_down)) + " down</small></td>";
}

std::string target_cell(const Summary& summary, const TargetOptions& target) {
  const std::string text = html_escaped(spaced(target_text(summary, target)));
  const std::size_t bracket = text.find(" (");
  const std::string body = bracket == std::string::npos
                               ? text
                               : text.substr(0, bracket) + "<small>" +
                                     text.substr(bracket + 2, text.size() - bracket - 3) +
                                     "</small>";
  return (summary.time_to_target_s ? "<td>" : "<td class=\"missed\">") + body + "</td>";
}

// "δ 0.05, τ 3, H 1, late", and the codec below.
std::string plan_cell(const RunResult& run) {
  std::string text;
  for (const PlanCell& knob : plan_cells(run.plan)) {
    if (!text.empty()) text += ", ";
    if (!knob.symbol.empty()) text += knob.symbol + ' ';
    text += knob.value;
  }
  return "<td>" + html_escaped(text) + "<small>" + html_escaped(run.codec) + "</small></td>";
}

// Long names break behind a colon.
std::string name_html(const Summary& summary) {
  std::string html;
  for (const char c : html_escaped(display_name(summary)))
    html += c == ':' ? std::string(":<wbr>") : std::string(1, c);
  return html;
}

std::string row_html(const Summary& summary, std::size_t index, const TargetOptions& target,
                     const std::vector<Summary>& all, const std::vector<RunResult>& runs) {
  const std::size_t seeds = summary.runs.size();
  const RunResult& first = runs[summary.runs.front()];
  const std::optional<double> faster = speed_up(summary, all);
  const auto four = [](double value) { return formatted("%.4f", value); };
  std::string row = summary.is_best ? "<tr>" : "<tr class=\"dimmed\">";
  row += R"(<th scope="row"><span class="swatch" style="--swatch:var(--c)" +
         std::to_string(index % 8) + ")\"></span>" + name_html(summary) + "</th>";
  row += target_cell(summary, target);
  row += "<td>" + (faster ? formatted("%.2f×", *faster) : "–") + "</td>";
  row += cell(summary.steps_to_target, seeds, [](double v) {
    return std::isfinite(v) ? formatted("%.0f", v) : std::string("never");
  });
  row += cell(summary.final_accuracy, seeds, four);
  row += cell(summary.final_loss, seeds, four);
  row += cell(summary.step_time_s, seeds, [](double v) { return spaced(time_text(v)); });
  row += computing_cell(summary.computing, first);
  row += bytes_cell(summary);
  row += plan_cell(first) + "<td>" + formatted("%.4g", first.lr) + "</td>";
  return row + "</tr>";
}

}  // namespace

std::string spaced(const std::string& quantity) {
  std::string text;
  for (const char c : quantity) {
    const bool is_unit = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (is_unit && !text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) != 0)
      text += ' ';
    text += c;
  }
  return text;
}

std::string short_number(double value) { return formatted("%.4g", value); }

std::string display_name(const Summary& summary) {
  return summary.settings.empty() ? summary.recipe : summary.recipe + ", " + summary.settings;
}

std::string facts_html(const Scenario& scenario, std::size_t parameters) {
  const std::vector<ReplicaOptions>& replicas = scenario.replicas;
  std::string model = scenario.model.name;
  if (parameters > 0) model += ", " + std::to_string(parameters) + " parameters";
  std::string data = scenario.data.kind + ", " + scenario.data.split;
  if (scenario.data.split == "dirichlet") data += '(' + short_number(scenario.data.dirichlet) + ')';
  std::string facts = fact("Model", model) + fact("Data", data);
  if (replicas.empty()) return facts;
  const std::string varying = is_varying(replicas) ? ", varying" : "";
  const auto rate = [](double value) { return spaced(to_string(Bandwidth{value})); };
  const auto time = [](double value) { return spaced(to_string(Seconds(value))); };
  const auto range = [&](auto value, auto show) { return range_text(replicas, value, show); };
  using Replica = const ReplicaOptions&;
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

std::string table_html(const TargetOptions& target, const std::vector<Summary>& summaries,
                       const std::vector<RunResult>& runs) {
  std::string html = "<table id=\"results\"><thead><tr>";
  for (const char* name :
       {"Recipe", "Time to target", "Against d‑sgd", "Steps to target", "Final accuracy",
        "Final loss", "Step time", "Computing", "Sent", "Plan", "Learning rate"})
    html += "<th scope=\"col\">" + term(name) + "</th>";
  html += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < summaries.size(); ++i)
    html += row_html(summaries[i], i, target, summaries, runs);
  return html + "</tbody></table>";
}

}  // namespace longhaul::lab
