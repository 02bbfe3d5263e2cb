#include "longhaul/hub/status_view.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "longhaul/base/units.h"
#include "longhaul/exchange/closing.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

nlohmann::ordered_json bits_or_null(double bytes_per_second) {
  if (bytes_per_second <= 0) return nullptr;
  return bytes_per_second * 8;
}

nlohmann::ordered_json seconds_or_null(double seconds) {
  if (seconds <= 0) return nullptr;
  return seconds;
}

std::string rate_text(double bytes_per_second) {
  return bytes_per_second <= 0 ? "-" : to_string(Bandwidth{.bytes_per_second = bytes_per_second});
}

std::string time_text(double seconds) { return seconds <= 0 ? "-" : to_string(Seconds(seconds)); }

std::string state_of(const v1::MemberReport& member) {
  if (!member.is_connected()) return "away";
  return member.is_enrolled() ? "trains" : "comes";
}

// A peer's text goes to a terminal: make it one line without anything that moves the cursor.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char letter) { return letter < 0x20 || letter == 0x7F; }, '?');
  return text;
}

std::string loss_text(const v1::MemberReport& member) {
  return member.step() == 0 ? "-" : formatted("%.4g", member.loss());
}

std::string member_line(const v1::MemberReport& member) {
  std::array<char, 256> line{};
  (void)std::snprintf(line.data(), line.size(), "%-16s %4u %-7s %8llu %9s %6.0f%% %10s %10s %9s\n",
                      plain(member.name()).c_str(), member.slot(), state_of(member).c_str(),
                      static_cast<unsigned long long>(member.step()), loss_text(member).c_str(),
                      100 * member.waiting_share(), rate_text(member.up_bytes_per_s()).c_str(),
                      rate_text(member.down_bytes_per_s()).c_str(),
                      time_text(member.latency_s()).c_str());
  return line.data();
}

// A hub of another version may have a plan that this program cannot read.
std::string plan_text_of(const v1::StatusReport& report) {
  const Result<Plan> plan = plan_from(report.plan());
  return plan.ok() ? plan_text(*plan) : plain("not readable: " + plan.error().message);
}

// All keys are null if the plan cannot be read.
nlohmann::ordered_json plan_json_of(const v1::StatusReport& report) {
  const Result<Plan> plan = plan_from(report.plan());
  if (plan.ok()) return plan_json(*plan);
  nlohmann::ordered_json json = plan_json({});
  for (nlohmann::ordered_json& value : json) value = nullptr;
  return json;
}

nlohmann::ordered_json number_or_null(double value) {
  if (value <= 0) return nullptr;
  return value;
}

nlohmann::ordered_json last_evaluation(const v1::StatusReport& report) {
  if (!report.has_evaluation()) return nullptr;
  return evaluation_json(report.evaluation());
}

std::string progress_text(const v1::StatusReport& report) {
  std::string text = "step      " + std::to_string(report.step());
  if (report.steps() > 0) text += " of " + std::to_string(report.steps());
  const std::string pace = pace_text(report.steps_per_s(), Seconds(report.left_s()));
  return text + (pace.empty() ? "" : ", " + pace) + '\n';
}

std::string score_text(const v1::StatusReport& report) {
  if (!report.has_evaluation()) return {};
  std::string text = "score     " + evaluation_text(score_from(report.evaluation()).evaluation) +
                     " at step " + std::to_string(report.evaluation().step()) + '\n';
  if (report.has_smoothed())
    text += "target    " + plain(report.target_metric()) +
            formatted(" %.4g", report.target_value()) +
            formatted("; mean of three evaluations %.4g", report.smoothed()) + '\n';
  return text;
}

}  // namespace

nlohmann::ordered_json evaluation_json(const v1::Evaluation& evaluation) {
  return {{"step", evaluation.step()},
          {"loss", evaluation.loss()},  // null, if it is not finite
          {"accuracy", evaluation.accuracy()},
          {"samples", evaluation.samples()}};
}

nlohmann::ordered_json status_json(const v1::StatusReport& report) {
  nlohmann::ordered_json replicas = nlohmann::ordered_json::array();
  for (const v1::MemberReport& member : report.members()) {
    replicas.push_back({{"name", member.name()},
                        {"slot", member.slot()},
                        {"connected", member.is_connected()},
                        {"enrolled", member.is_enrolled()},
                        {"step", member.step()},
                        {"loss", member.loss()},
                        {"waiting_share", member.waiting_share()},
                        {"passes", member.passes()},
                        {"compute_s", member.compute_s()},
                        {"up_bits_per_s", bits_or_null(member.up_bytes_per_s())},
                        {"down_bits_per_s", bits_or_null(member.down_bytes_per_s())},
                        {"latency_s", member.latency_s()},
                        {"bytes_up", member.bytes_up()},
                        {"bytes_down", member.bytes_down()},
                        {"returned", member.returned()},
                        {"rejected", member.rejected()}});
  }
  nlohmann::ordered_json json{
      {"scenario", report.scenario_name()},
      {"recipe", report.recipe()},
      {"parameters", report.elements()},
      {"slots", report.replicas()},
      {"started", report.is_started()},
      {"next_round", report.next_round()},
      {"step", report.step()},
      {"steps", report.steps()},
      {"steps_per_s", number_or_null(report.steps_per_s())},
      {"left_s", number_or_null(report.left_s())},
      {"evaluation", last_evaluation(report)},
      {"target", {{"metric", report.target_metric()}, {"value", report.target_value()}}},
      {"smoothed", report.has_smoothed() ? nlohmann::ordered_json(report.smoothed()) : nullptr}};
  json.update(plan_json_of(report));
  json.update({{"reason", report.reason()},
               {"step_time_s", seconds_or_null(report.step_time_s())},
               {"predicted_step_time_s", seconds_or_null(report.predicted_step_time_s())},
               {"refused", report.refused()},
               {"strangers", report.strangers()},
               {"rejected", report.rejected()},
               {"mismatches", report.mismatches()},
               {"replicas", replicas}});
  return json;
}

std::string status_text(const v1::StatusReport& report) {
  std::string text = "run       " + plain(report.scenario_name()) + ", " + plain(report.recipe());
  if (report.elements() > 0) text += ", " + std::to_string(report.elements()) + " parameters";
  text += '\n';
  if (report.is_started()) {
    text += progress_text(report) + score_text(report);
    text += "round     " + std::to_string(report.next_round()) + '\n';
    text += "plan      " + plan_text_of(report) + '\n';
    if (!report.reason().empty()) text += "because   " + plain(report.reason()) + '\n';
    text += "pace      " + time_text(report.step_time_s()) + " a step, predicted " +
            time_text(report.predicted_step_time_s()) + '\n';
  } else {
    text += "round     none yet: waits for its replicas\n";
  }
  text += "refused   " + std::to_string(report.refused()) + " joins, " +
          std::to_string(report.strangers()) + " connections, " +
          std::to_string(report.rejected()) + " messages; " + std::to_string(report.mismatches()) +
          " models that differed\n";
  const auto here = std::ranges::count_if(report.members(), &v1::MemberReport::is_connected);
  text += "replicas  " + std::to_string(here) + " of " + std::to_string(report.replicas()) + '\n';
  if (report.members_size() == 0) return text;
  text +=
      "\nname             slot state       step      loss waiting         up       down   "
      "latency\n";
  for (const v1::MemberReport& member : report.members()) text += member_line(member);
  return text;
}

}  // namespace longhaul
