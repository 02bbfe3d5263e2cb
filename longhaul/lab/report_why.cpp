// The parts of the report that say what figures mean: prediction, hindsight, glossary.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/lab/report.h"
#include "longhaul/lab/report_parts.h"

namespace longhaul::lab {
namespace {

using GlossaryEntry = std::pair<std::string_view, std::string_view>;

constexpr std::array<GlossaryEntry, 34> kGlossary{{
    {"Recipe", "a method with its settings: how updates are compressed, delayed and merged"},
    {"Time to target", "when the mean of three evaluations in a row crossed the target"},
    {"Against d‑sgd", "how many times sooner than d-sgd (plain data-parallel SGD) on this page"},
    {"Steps to target",
     "the same crossing in steps: what compression and staleness cost in "
     "learning. It varies with the seed"},
    {"Final accuracy", "of the shared model on all held-out data, at the end"},
    {"Final loss", "of the shared model on all held-out data, at the end"},
    {"Step time", "mean time of a step once the pipeline has filled"},
    {"Computing",
     "share of the time that replicas compute, mean over replicas; by replica below, "
     "where they differ"},
    {"Sent", "payload bytes on the links, all replicas together"},
    {"Plan", "keep ratio δ, delay τ, local steps H, merge rule and codec at the end of the run"},
    {"Learning rate", "of the replicas' optimizer"},
    {"Link against model",
     "α: share of a dense update that the link carries in one step. β: round "
     "trip in steps"},
    {"Replicas", "workers: processes that compute gradients"},
    {"Up", "from a replica to the hub"},
    {"Down", "from the hub to a replica"},
    {"Latency, one way", "time from one end of the link to the other, for the first bit"},
    {"Compute time of a step", "gradient, optimizer, compressing and merging of one step"},
    {"replica", "worker: a process that computes gradients"},
    {"hub", "parameter server: closes rounds, sends means, chooses the plan"},
    {"step", "one gradient on every replica"},
    {"round", "the exchange of one update of every replica; it ends with their mean"},
    {"update", "what a replica sends in a round: a compressed gradient or change of the model"},
    {"mean", "aggregated update, which all replicas merge in the same step"},
    {"residual", "error-feedback buffer: what compression left out, sent later"},
    {"keep ratio δ", "density: share of the elements of an update that is sent (sparsification)"},
    {"delay τ", "staleness: a mean is merged this many steps after its updates were computed"},
    {"period H", "local steps: steps between two rounds"},
    {"merge rule",
     "what happens with a mean. late: each replica has stepped with its own update "
     "at once, and the mean takes its place (delayed averaging with correction)"},
    {"codec", "how the kept elements become bytes: top_k/bf16 is the largest, as bfloat16"},
    {"time on the line",
     "while the bits of a message pass at the rate of the link, or queue for it"},
    {"latency", "flight time: the message has left the line and has not arrived"},
    {"waiting for others", "its own update has arrived; the slowest replica's has not"},
    {"diverged", "ten steps in a row without a finite gradient: the run ended"},
    {"clairvoyant", "auto, if it knew the links in advance"},
}};

std::string cell_html(const std::string& text) { return "<td>" + html_escaped(text) + "</td>"; }

std::string spaced_time(double seconds) { return spaced(time_text(seconds)); }

std::string off_by(double measured, double predicted) {
  return formatted("%+.1f %%", 100 * (measured / predicted - 1));
}

std::string prediction_row(const Summary& summary, const RunResult& run) {
  const double predicted = run.predicted_step_time->count();
  const double measured = run.step_time.count();
  std::string row = "<tr><th scope=\"row\">" + html_escaped(display_name(summary)) + "</th><td>" +
                    std::to_string(run.seed) + "</td>" + cell_html(spaced_time(predicted)) +
                    cell_html(spaced_time(measured)) + cell_html(off_by(measured, predicted));
  if (run.time_to_target && run.steps_to_target) {
    const double at_that_pace = predicted * static_cast<double>(*run.steps_to_target);
    row += cell_html(spaced_time(at_that_pace)) +
           cell_html(spaced_time(run.time_to_target->count())) +
           cell_html(off_by(run.time_to_target->count(), at_that_pace));
  } else {
    row += "<td>–</td><td>–</td><td>–</td>";
  }
  const std::string equal = run.status == RunStatus::kDiverged
                                ? "diverged"
                                : "all " + std::to_string(run.replicas) + " models equal";
  return row + "<td>" + equal + "<small>digest " + html_escaped(run.digest) + "</small></td></tr>";
}

std::string judged_row(const std::string& name, const Judged& judged, const Verdict& verdict) {
  const std::optional<double> regret = verdict.regret(judged);
  return "<tr><th scope=\"row\">" + html_escaped(name) + "</th>" +
         cell_html(judged.time_s ? spaced_time(*judged.time_s) : "not reached") +
         cell_html(regret ? formatted("%+.1f %%", 100 * *regret) : "–") + "</tr>";
}

}  // namespace

std::string term(const std::string& word) {
  const auto entry = std::ranges::find(kGlossary, word, &GlossaryEntry::first);
  if (entry == kGlossary.end()) return html_escaped(word);
  return "<abbr title=\"" + html_escaped(entry->second) + "\">" + html_escaped(word) + "</abbr>";
}

std::string glossary_html() {
  std::string html = "<dl class=\"glossary\">";
  for (const auto& [word, meaning] : kGlossary)
    html += "<div><dt>" + html_escaped(word) + "</dt><dd>" + html_escaped(meaning) + "</dd></div>";
  return html + "</dl>";
}

std::string clock_html(bool is_real) {
  return is_real ? "<strong>Real time, emulated links.</strong> A hub and its replicas ran as "
                   "processes on one machine; relays between them held each link to its rate and "
                   "latency."
                 : "<strong>Virtual time, modelled links.</strong> Every gradient is real; only "
                   "the time is computed.";
}

std::string prediction_html(const std::vector<Summary>& summaries,
                            const std::vector<RunResult>& runs) {
  if (!is_rehearsal(runs)) return "";
  std::string html =
      "<section id=\"prediction\"><h2>Predicted and measured</h2><p class=\"note\">The step time "
      "was predicted from the scenario before a replica started. For the time to target the "
      "predicted step is multiplied by the steps that were needed.</p><div class=\"scroll\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Predicted and measured\"><table><thead><tr>";
  for (const char* name : {"Recipe", "Seed", "Step, predicted", "measured", "off by",
                           "To target, predicted", "measured", "off by", "At the end"})
    html += std::string("<th scope=\"col\">") + name + "</th>";
  html += "</tr></thead><tbody>";
  for (const Summary& summary : summaries) {
    for (const std::size_t run : summary.runs) {
      if (runs[run].predicted_step_time) html += prediction_row(summary, runs[run]);
    }
  }
  return html + "</tbody></table></div></section>";
}

std::string oracle_html(const std::optional<Verdict>& verdict) {
  if (!verdict) return "";
  std::string html =
      R"(<section id="oracle"><h2>Hindsight</h2><p class="note">Time to target of )" +
      std::to_string(verdict->fixed.size()) +
      " fixed plans, mean over seeds, over keep ratio δ and delay τ. The ring is the best of them; "
      "a dot is where a judged recipe ended.</p><div class=\"pair\"><figure><div "
      "id=\"map\"></div></figure><div class=\"scroll\"><table><thead><tr><th "
      "scope=\"col\">Recipe</th><th scope=\"col\">Time to target</th><th "
      "scope=\"col\">Regret</th></tr></thead><tbody>";
  html += judged_row("best fixed plan", verdict->best_fixed, *verdict);
  html += judged_row("clairvoyant", verdict->clairvoyant, *verdict);
  for (const Judged& judged : verdict->judged) html += judged_row(judged.recipe, judged, *verdict);
  return html + "</tbody></table></div></div></section>";
}

}  // namespace longhaul::lab
