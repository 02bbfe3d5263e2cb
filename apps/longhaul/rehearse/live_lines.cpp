#include "apps/longhaul/rehearse/live_lines.h"

#include <iostream>

#include "longhaul/base/units.h"
#include "longhaul/round/plan.h"

namespace longhaul::apps {
namespace {

std::string head_of(const RehearsalView& view, const std::string& target) {
  std::string head = view.recipe + ": " + formatted("%.1f s", view.time_s) + ", round " +
                     std::to_string(view.status.at("next_round").get<std::size_t>());
  if (const Result<Plan> plan = plan_from_json(view.status); plan.ok())
    head += ", " + plan_text(*plan);
  if (view.metric) head += ", " + target + formatted(" %.4f", *view.metric);
  if (view.faults > 0) head += ", fault " + std::to_string(view.faults) + ": " + view.fault;
  return head;
}

std::string line_of(const nlohmann::ordered_json& replica) {
  const auto rate = [&](const char* key) {
    return replica.at(key).is_null() ? std::string("-")
                                     : formatted("%.1f", replica.at(key).get<double>() / 1e6);
  };
  const auto& loss = replica.at("loss");
  return "  " + replica.at("name").get<std::string>() + "  step " +
         formatted("%4.0f", replica.at("step").get<double>()) +
         (loss.is_number() ? formatted("  loss %.3f", loss.get<double>()) : "  loss -") +
         "  link " + rate("up_bits_per_s") + " / " + rate("down_bits_per_s") + " Mbit/s " +
         formatted("%.0f ms", 1e3 * replica.at("latency_s").get<double>()) +
         formatted("  waiting %.0f %%", 100 * replica.at("waiting_share").get<double>()) +
         (replica.at("connected").get<bool>() ? "" : "  away");
}

}  // namespace

void LiveLines::show(const RehearsalView& view) {
  if (view.status.is_null()) return;
  const bool is_news = !is_terminal_ && view.faults > faults_;
  if (view.time_s < next_s_ && !is_news) return;
  next_s_ = view.time_s + (is_terminal_ ? 0.2 : 5.0);
  faults_ = view.faults;
  std::string text;
  if (is_terminal_ && lines_ > 0) text = "\033[" + std::to_string(lines_) + "A";
  lines_ = 0;
  add(text, head_of(view, target_));
  if (is_terminal_) {
    for (const auto& replica : view.status.at("replicas")) add(text, line_of(replica));
  }
  std::cerr << text << std::flush;
}

void LiveLines::next_run() {
  next_s_ = 0;
  lines_ = 0;
  faults_ = 0;
}

void LiveLines::add(std::string& text, const std::string& line) {
  text += is_terminal_ ? "\r\033[K" + line + '\n' : line + '\n';
  ++lines_;
}

}  // namespace longhaul::apps
