#include "apps/longhaul/plan/plan_map.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/codec/payload.h"
#include "longhaul/plan/planner.h"
#include "longhaul/plan/step_time.h"

namespace longhaul::apps {
namespace {

std::string percent(double share) { return formatted("%.0f", 100 * share); }

void add_table(std::ostringstream& out, const PlanMap& map, const std::string& title,
               const std::vector<std::vector<double>>& shares) {
  out << title << ": % of the time spent computing\n"
      << "  latency";
  const auto cell = [&](const std::string& text) {
    out << std::string(text.size() < 10 ? 10 - text.size() : 1, ' ') << text;
  };
  for (const Bandwidth rate : map.bandwidths) cell(to_string(rate));
  out << '\n';
  for (std::size_t row = 0; row < map.latencies.size(); ++row) {
    const std::string name = to_string(map.latencies[row]);
    out << std::string(name.size() < 9 ? 9 - name.size() : 0, ' ') << name;
    for (const double share : shares[row]) cell(percent(share));
    out << '\n';
  }
}

// From red (waiting) over yellow to green (computing).
std::string colour(double share) {
  const double hue = 120 * share;
  std::array<char, 48> text{};
  (void)std::snprintf(text.data(), text.size(), "hsl(%.0f,70%%,%.0f%%)", hue, 82 - 22 * share);
  return text.data();
}

// Attributes of an SVG element: name="value" for each pair.
using Attributes = std::vector<std::pair<const char*, std::string>>;

std::string element(const char* name, const Attributes& attributes, const std::string& content) {
  std::string text = std::string("<") + name;
  for (const auto& [key, value] : attributes)
    text.append(" ").append(key).append("='").append(value).append("'");
  return text + '>' + content + "</" + name + ">\n";
}

std::string at(double place) { return std::to_string(std::lround(place)); }

void add_panel(std::ostringstream& out, const PlanMap& map, const std::string& title,
               const std::vector<std::vector<double>>& shares, double left) {
  constexpr double kWidth = 56;
  constexpr double kHeight = 32;
  constexpr double kTop = 60;
  out << element("text", {{"x", at(left)}, {"y", "20"}, {"font-size", "15"}}, title);
  const double width = kWidth * static_cast<double>(map.bandwidths.size());
  const double middle_row = kTop + kHeight * static_cast<double>(map.latencies.size()) / 2;
  out << element("text", {{"x", at(left + width / 2)}, {"y", "36"}, {"text-anchor", "middle"}},
                 "upload bandwidth")
      << element(
             "text",
             {{"text-anchor", "middle"},
              {"transform", "translate(" + at(left - 50) + ' ' + at(middle_row) + ") rotate(-90)"}},
             "one-way latency");
  for (std::size_t column = 0; column < map.bandwidths.size(); ++column) {
    const double middle = left + kWidth * (static_cast<double>(column) + 0.5);
    out << element("text", {{"x", at(middle)}, {"y", "48"}, {"text-anchor", "middle"}},
                   to_string(map.bandwidths[column]));
  }
  for (std::size_t row = 0; row < map.latencies.size(); ++row) {
    const double y = kTop + kHeight * static_cast<double>(row);
    out << element("text", {{"x", at(left - 6)}, {"y", at(y + 20)}, {"text-anchor", "end"}},
                   to_string(map.latencies[row]));
    for (std::size_t column = 0; column < map.bandwidths.size(); ++column) {
      const double x = left + kWidth * static_cast<double>(column);
      const double share = shares[row][column];
      out << element("rect",
                     {{"x", at(x)},
                      {"y", at(y)},
                      {"width", at(kWidth - 2)},
                      {"height", at(kHeight - 2)},
                      {"fill", colour(share)}},
                     "")
          << element("text", {{"x", at(x + 27)}, {"y", at(y + 20)}, {"text-anchor", "middle"}},
                     percent(share));
    }
  }
}

}  // namespace

Seconds d_sgd_step_time(const PlanOptions& request, const ReplicaConditions& link) {
  const RoundSizes dense({.kind = CodecKind::kDense, .values = ValueFormat::kFp32},
                         request.elements, request.replicas, {.least = 1});
  return step_time({link}, dense.exact(1), 0);
}

PlanMap plan_map(const PlanOptions& request) {
  PlanMap map{.recipe = std::string(request.recipe.name),
              .work = std::to_string(request.elements) + " parameters, " +
                      to_string(request.link.compute) + " of computing per step, " +
                      std::to_string(request.replicas) + " replicas"};
  for (const double mbit : {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000})
    map.bandwidths.push_back(Bandwidth::from_bits_per_second(1e6 * mbit));
  for (const double ms : {5, 10, 20, 50, 100, 200, 300}) map.latencies.emplace_back(1e-3 * ms);
  const auto planner =
      make_planner({.kind = request.recipe.planner, .plan = request.recipe.plan}, request.sizes());
  const double down_by_up = request.link.down.bytes_per_second / request.link.up.bytes_per_second;
  for (const Seconds latency : map.latencies) {
    std::vector<double>& d_sgd = map.d_sgd.emplace_back();
    std::vector<double>& plan = map.plan.emplace_back();
    for (const Bandwidth rate : map.bandwidths) {
      ReplicaConditions link = request.link;
      link.latency = latency;
      link.up = rate;
      link.down = {.bytes_per_second = rate.bytes_per_second * down_by_up};
      d_sgd.push_back(link.compute / d_sgd_step_time(request, link));
      plan.push_back(link.compute / planner->first(Conditions(request.replicas, link)).step_time);
    }
  }
  return map;
}

std::string plan_map_text(const PlanMap& map) {
  std::ostringstream out;
  out << map.work << "; columns: upload bandwidth, rows: one-way latency\n\n";
  add_table(out, map, "d-sgd", map.d_sgd);
  out << '\n';
  add_table(out, map, map.recipe, map.plan);
  return out.str();
}

std::string plan_map_svg(const PlanMap& map) {
  std::ostringstream panels;
  panels << kPlanMapMark;
  panels << element("rect", {{"width", "100%"}, {"height", "100%"}, {"fill", "white"}}, "");
  add_panel(panels, map, "d-sgd: % of the time spent computing", map.d_sgd, 70);
  add_panel(panels, map, map.recipe + ": % of the time spent computing", map.plan, 740);
  panels << element("text", {{"x", "70"}, {"y", "305"}}, map.work);
  return element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"width", "1330"},
                  {"height", "320"},
                  {"font-family", "sans-serif"},
                  {"font-size", "11"}},
                 panels.str());
}

}  // namespace longhaul::apps
