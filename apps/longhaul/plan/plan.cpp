// longhaul plan: what would be chosen on a link, and why.
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/plan/plan_layers.h"
#include "apps/longhaul/plan/plan_map.h"
#include "apps/longhaul/plan/plan_options.h"
#include "apps/longhaul/plan/plan_rows.h"
#include "longhaul/base/file.h"
#include "longhaul/base/text.h"
#include "longhaul/base/units.h"
#include "longhaul/plan/builtin_profiles.h"
#include "longhaul/plan/iteration_model.h"
#include "longhaul/plan/planner.h"

namespace longhaul::apps {
namespace {

// In the order of WayDown.
constexpr std::array<const char*, 4> kWays{"dense", "union", "forwarded", "two-way"};

Decision decision_for(const PlanOptions& request) {
  const Conditions replicas(request.replicas, request.link);
  const auto planner = make_planner(
      {.kind = request.recipe.planner, .plan = request.recipe.plan, .parts = request.parts},
      request.sizes());
  return planner->first(replicas);
}

double efficiency(const PlanOptions& request, Seconds step_time) {
  return request.link.compute / step_time;
}

nlohmann::ordered_json json_of(const PlanOptions& request, const Decision& decision) {
  const RoundSize size = request.sizes().exact(decision.plan.keep_ratio);
  nlohmann::ordered_json steps;  // null: not known
  if (is_calibrated(decision.plan.merge)) steps = decision.relative_steps;
  nlohmann::ordered_json json{{"recipe", request.recipe.name},
                              {"codec", request.recipe.codec.name()}};
  json.update(plan_json(decision.plan));
  json.update({{"step_time_s", decision.step_time.count()},
               {"efficiency", efficiency(request, decision.step_time)},
               {"relative_steps", steps},
               {"bytes_up", size.up},
               {"bytes_down", size.down},
               {"way_down", kWays.at(static_cast<std::size_t>(size.way))},
               {"d_sgd_step_time_s", d_sgd_step_time(request, request.link).count()},
               {"reason", decision.reason}});
  if (!request.parts.layers.empty())  // the model travels in one piece, so no layer is hidden
    json.update({{"exposed_s", (decision.step_time - request.link.compute).count()},
                 {"hidden_share", nullptr},
                 {"bound_s", nullptr}});
  return json;
}

std::string text_of(const PlanOptions& request, const Decision& decision) {
  std::string rows;
  const RoundSizes sizes = request.sizes();
  const RoundSize size = sizes.exact(decision.plan.keep_ratio);
  const Seconds d_sgd = d_sgd_step_time(request, request.link);
  const double share = efficiency(request, decision.step_time);
  rows += row("codec", request.recipe.codec.name());
  for (const PlanCell& knob : plan_cells(decision.plan))
    rows += row(knob.name, knob.value + (knob.unit.empty() ? "" : ' ' + knob.unit));
  rows += row("step time", to_string(decision.step_time) +
                               formatted(", %.0f %% computing", 100 * share) +
                               " (d-sgd: " + to_string(d_sgd) +
                               formatted(", %.1f %%)", 100 * efficiency(request, d_sgd)));
  rows += row("sends", size_text(size.up) + " up, " + size_text(size.down) + " down (" +
                           kWays.at(static_cast<std::size_t>(size.way)) +
                           (decision.plan.period_steps > 1 ? ") per replica and period"
                                                           : ") per replica and step"));
  std::string ways;
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    const double bytes = sizes.bytes_down(decision.plan.keep_ratio, static_cast<WayDown>(way));
    ways.append(ways.empty() ? "" : ", ")
        .append(kWays.at(way))
        .append(" ")
        .append(size_text(bytes));
  }
  rows += row("ways down", ways);
  rows += paragraph("because", decision.reason);
  return rows;
}

nlohmann::ordered_json map_json(const PlanOptions& request) {
  nlohmann::ordered_json json{{"recipe", std::string(request.recipe.name)},
                              {"efficiency", plan_shares(request)},
                              {"d_sgd_efficiency", d_sgd_shares(request)}};
  for (const Bandwidth rate : map_bandwidths()) json["bandwidth"].push_back(to_string(rate));
  for (const Seconds latency : map_latencies()) json["latency"].push_back(to_string(latency));
  return json;
}

int draw_map(const PlanOptions& request, const PlanCommandOptions& arguments) {
  const std::string& out = arguments.out;
  if (out.empty()) {
    std::cout << (arguments.json ? map_json(request).dump(2) + '\n' : plan_map_text(request));
    return kExitDone;
  }
  const std::string svg = plan_map_svg(request);
  const Status written =
      write_output(out, std::as_bytes(std::span(svg)), kPlanMapMark, arguments.is_forced);
  if (!written.ok()) return complain("plan", Error(written.error()).within("--out"));
  (is_standard_output(out) ? std::cerr : std::cout) << "map: " << out << '\n';
  return kExitDone;
}

int print_layers(const PlanOptions& request, const LayerSchedule& schedule, bool is_json,
                 std::optional<double> relative_steps = {}) {
  std::cout << (is_json ? layer_plan_json(request, schedule, relative_steps).dump(2) + '\n'
                        : layer_plan_text(request, schedule));
  return kExitDone;
}

int run_plan(const PlanCommandOptions& arguments) {
  const Result<PlanOptions> request = plan_request(arguments);
  if (!request.ok()) return complain("plan", request.error(), kExitWrongUse);
  const std::string doubt = doubt_about_params(arguments.params, request->elements);
  if (!doubt.empty()) std::cerr << "longhaul plan: " << doubt << '\n';
  if (arguments.map) return draw_map(*request, arguments);
  if (!arguments.out.empty())
    return complain("plan", {ErrorCode::kInvalidArgument, "--out: only with --map"});
  const bool has_parts = !arguments.profile.empty();
  const bool is_auto = request->recipe.planner == PlannerKind::kAuto;
  if (has_parts && !is_auto) return print_layers(*request, schedule_for(*request), arguments.json);
  const Decision decision = decision_for(*request);
  if (has_parts && !decision.plan.schedule.empty())
    return print_layers(*request, schedule_of(*request, decision), arguments.json,
                        decision.relative_steps);
  std::cout << (arguments.json ? json_of(*request, decision).dump(2) + '\n'
                               : text_of(*request, decision));
  return kExitDone;
}

void add_map_options(CLI::App& plan, PlanCommandOptions& arguments) {
  plan.add_flag(
      "--map", arguments.map,
      "Draw the share of time spent computing over bandwidth and latency, for d-sgd and for the "
      "recipe");
  CLI::Option* out = plan.add_option(
      "--out", arguments.out, "With --map: write it as an SVG to this file; -: standard output");
  plan.add_flag("--force", arguments.is_forced,
                "With --out: replace a file that Longhaul did not write, too")
      ->needs(out);
}

void add_layer_options(CLI::App& plan, PlanCommandOptions& arguments) {
  CLI::Option* profile = plan.add_option(
      "--profile", arguments.profile,
      "Plan layer by layer: a built-in profile (" + joined(builtin_profile_names()) +
          "), or a file of `longhaul profile --out`, in place of --params and --step-time");
  for (const char* option : {"--map", "--min-ratio", "--max-ratio"})
    profile->excludes(plan.get_option(option));
  plan.add_option("--period", arguments.period,
                  "With --profile: steps in which each layer is averaged at least once (default: "
                  "chosen)")
      ->check(CLI::Range(1, 1000))
      ->needs(profile);
  plan.add_flag("--one-way", arguments.is_one_way,
                "With --profile: a layer crosses one line once, as in an all-reduce, and must be "
                "back at the end of the backward pass")
      ->needs(profile);
  plan.add_option("--layers", arguments.layers,
                  "With --profile: whole (each as it is) or cut (small ones travel together, large "
                  "ones in pieces, as in a run); default: cut for 16 layers and more")
      ->check(CLI::IsMember({"whole", "cut"}))
      ->needs(profile);
  plan.add_flag("--contiguous", arguments.is_contiguous,
                "With --profile: only consecutive layers in a step, each once, as published")
      ->needs(profile);
}

}  // namespace

void add_plan(CLI::App& program, Run& run) {
  CLI::App* plan = program.add_subcommand("plan", "Say what would be chosen on a link, and why");
  plan->footer(
      "Examples:\n"
      "  longhaul plan --params 124M --step-time 250ms --bandwidth 500mbit --latency 30ms\n"
      "  longhaul plan --params 1B --step-time 1s --map\n"
      "  longhaul plan --profile gpt2-124m --bandwidth 1gbit --latency 5ms\n\n"
      "With --profile the plan is a schedule: which layers are averaged in which step of a "
      "period.\n"
      "Layers travel dense, each as soon as its local step is made (docs/layers.md).");
  const auto arguments =
      std::make_shared<PlanCommandOptions>();  // shared with the callback, which outlives this call
  plan->add_option("--params", arguments->params, "Parameters of the model, such as 124M");
  plan->add_option("--step-time", arguments->step_time, "Compute time of a step, such as 250ms");
  plan->add_option("--bandwidth", arguments->bandwidth,
                   "Upload rate of each replica, such as 500mbit (not needed with --map)");
  plan->add_option("--down", arguments->down, "Download rate of each replica (default: as up)");
  plan->add_option("--latency", arguments->latency,
                   "One-way latency, such as 30ms (not needed with --map)");
  plan->add_option("--replicas", arguments->replicas, "Replicas")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  plan->add_option("--recipe", arguments->recipe,
                   "Recipe whose plan is computed: auto, deco, d-sgd, … (default: auto; with "
                   "--profile: dreamddp)");
  plan->add_option("--codec", arguments->codec,
                   "Codec in place of the recipe's, such as top_k/2bit");
  plan->add_option("--min-ratio", arguments->least_ratio,
                   "Smallest keep ratio that a plan may choose")
      ->capture_default_str();
  plan->add_option("--max-ratio", arguments->most_ratio,
                   "Largest keep ratio that a plan may choose")
      ->capture_default_str();
  add_map_options(*plan, *arguments);
  add_layer_options(*plan, *arguments);
  plan->add_flag("--json", arguments->json, "One JSON object instead of the table");
  plan->callback([arguments, &run] { run = [arguments] { return run_plan(*arguments); }; });
}

}  // namespace longhaul::apps
