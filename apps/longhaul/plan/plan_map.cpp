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

// "124000000 parameters, 250ms of computing per step, 4 replicas"
std::string work_text(const PlanOptions& request) {
  return std::to_string(request.elements) + " parameters, " + to_string(request.link.compute) +
         " of computing per step, " + std::to_string(request.replicas) + " replicas";
}

// The share that computing has of a step whose time over a link is `step_time(link)`.
template <typename StepTime>
MapShares shares_of(const PlanOptions& request, const StepTime& step_time) {
  const double down_by_up = request.link.down.bytes_per_second / request.link.up.bytes_per_second;
  MapShares shares;
  for (const Seconds latency : map_latencies()) {
    std::vector<double>& row = shares.emplace_back();
    for (const Bandwidth rate : map_bandwidths()) {
      ReplicaConditions link = request.link;
      link.latency = latency;
      link.up = rate;
      link.down = {.bytes_per_second = rate.bytes_per_second * down_by_up};
      row.push_back(link.compute / step_time(link));
    }
  }
  return shares;
}

void add_table(std::ostringstream& out, const std::string& title, const MapShares& shares) {
  out << title << ": % of the time spent computing\n"
      << "  latency";
  const auto cell = [&](const std::string& text) {
    out << std::string(text.size() < 10 ? 10 - text.size() : 1, ' ') << text;
  };
  for (const Bandwidth rate : map_bandwidths()) cell(to_string(rate));
  out << '\n';
  const std::vector<Seconds> latencies = map_latencies();
  for (std::size_t row = 0; row < latencies.size(); ++row) {
    const std::string name = to_string(latencies[row]);
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

// The size of a cell of the map, with its margin.
constexpr double kCellWidth = 56;
constexpr double kCellHeight = 32;

void add_cell(std::ostringstream& out, double x, double y, double share) {
  out << element("rect",
                 {{"x", at(x)},
                  {"y", at(y)},
                  {"width", at(kCellWidth - 2)},
                  {"height", at(kCellHeight - 2)},
                  {"fill", colour(share)}},
                 "")
      << element("text", {{"x", at(x + 27)}, {"y", at(y + 20)}, {"text-anchor", "middle"}},
                 percent(share));
}

void add_panel(std::ostringstream& out, const std::string& title, const MapShares& shares,
               double left) {
  const std::vector<Bandwidth> bandwidths = map_bandwidths();
  const std::vector<Seconds> latencies = map_latencies();
  constexpr double kTop = 60;
  out << element("text", {{"x", at(left)}, {"y", "20"}, {"font-size", "15"}}, title);
  const double width = kCellWidth * static_cast<double>(bandwidths.size());
  const double middle_row = kTop + kCellHeight * static_cast<double>(latencies.size()) / 2;
  out << element("text", {{"x", at(left + width / 2)}, {"y", "36"}, {"text-anchor", "middle"}},
                 "upload bandwidth")
      << element(
             "text",
             {{"text-anchor", "middle"},
              {"transform", "translate(" + at(left - 50) + ' ' + at(middle_row) + ") rotate(-90)"}},
             "one-way latency");
  for (std::size_t column = 0; column < bandwidths.size(); ++column) {
    const double middle = left + kCellWidth * (static_cast<double>(column) + 0.5);
    out << element("text", {{"x", at(middle)}, {"y", "48"}, {"text-anchor", "middle"}},
                   to_string(bandwidths[column]));
  }
  for (std::size_t row = 0; row < latencies.size(); ++row) {
    const double y = kTop + kCellHeight * static_cast<double>(row);
    out << element("text", {{"x", at(left - 6)}, {"y", at(y + 20)}, {"text-anchor", "end"}},
                   to_string(latencies[row]));
    for (std::size_t column = 0; column < bandwidths.size(); ++column)
      add_cell(out, left + kCellWidth * static_cast<double>(column), y, shares[row][column]);
  }
}

}  // namespace

Seconds d_sgd_step_time(const PlanOptions& request, const ReplicaConditions& link) {
  const RoundSizes dense({.kind = CodecKind::kDense, .values = ValueFormat::kFp32},
                         request.elements, request.replicas, {.least = 1});
  return step_time({link}, dense.exact(1), 0);
}

std::vector<Bandwidth> map_bandwidths() {
  std::vector<Bandwidth> columns;
  for (const double mbit : {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10'000})
    columns.push_back(Bandwidth::from_bits_per_second(1e6 * mbit));
  return columns;
}

std::vector<Seconds> map_latencies() {
  std::vector<Seconds> rows;
  for (const double ms : {5, 10, 20, 50, 100, 200, 300}) rows.emplace_back(1e-3 * ms);
  return rows;
}

MapShares d_sgd_shares(const PlanOptions& request) {
  return shares_of(request,
                   [&](const ReplicaConditions& link) { return d_sgd_step_time(request, link); });
}

MapShares plan_shares(const PlanOptions& request) {
  const auto planner =
      make_planner({.kind = request.recipe.planner, .plan = request.recipe.plan}, request.sizes());
  return shares_of(request, [&](const ReplicaConditions& link) {
    return planner->first(Conditions(request.replicas, link)).step_time;
  });
}

std::string plan_map_text(const PlanOptions& request) {
  std::ostringstream out;
  out << work_text(request) << "; columns: upload bandwidth, rows: one-way latency\n\n";
  add_table(out, "d-sgd", d_sgd_shares(request));
  out << '\n';
  add_table(out, std::string(request.recipe.name), plan_shares(request));
  return out.str();
}

std::string plan_map_svg(const PlanOptions& request) {
  std::ostringstream panels;
  panels << kPlanMapMark;
  panels << element("rect", {{"width", "100%"}, {"height", "100%"}, {"fill", "white"}}, "");
  add_panel(panels, "d-sgd: % of the time spent computing", d_sgd_shares(request), 70);
  add_panel(panels, std::string(request.recipe.name) + ": % of the time spent computing",
            plan_shares(request), 740);
  panels << element("text", {{"x", "70"}, {"y", "305"}}, work_text(request));
  return element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"width", "1330"},
                  {"height", "320"},
                  {"font-family", "sans-serif"},
                  {"font-size", "11"}},
                 panels.str());
}

}  // namespace longhaul::apps
