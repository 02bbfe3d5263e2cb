// longhaul probe: how good the link to a hub is, and what `auto` would choose on it.
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/installed.h"
#include "apps/longhaul/command/visit_options.h"
#include "apps/longhaul/plan/plan_options.h"
#include "longhaul/base/units.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/exchange/link_probe.h"
#include "longhaul/job/task.h"
#include "longhaul/plan/planner.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kProbeTimeout{30.0};
constexpr Seconds kQuiet{2.0};  // then it tells what it is doing

// The model and step time of the hub's run; zeros if they are not known.
Result<PlanOptions> work_given(const VisitCommandOptions& arguments) {
  PlanOptions work{.replicas = 1};
  if (!arguments.params.empty()) {
    Result<std::uint64_t> elements = parse_count(arguments.params);
    if (!elements.ok()) return std::move(elements).error().within("--params");
    work.elements = *elements;
    const std::string doubt = doubt_about_params(arguments.params, *elements);
    if (!doubt.empty()) std::cerr << "longhaul probe: " << doubt << '\n';
  }
  if (!arguments.step_time.empty()) {
    Result<Seconds> compute = parse_duration(arguments.step_time);
    if (!compute.ok()) return std::move(compute).error().within("--step-time");
    work.link.compute = *compute;
  }
  return work;
}

// Asks the hub for facts that the command line does not give.
Status complete(PlanOptions& work, Connector& connector, const HubAccess& access) {
  const v1::StatusReport status = LONGHAUL_TRY(
      ask_for_status(connector, access.name, access.token, deadline_after(kProbeTimeout)));
  work.replicas = std::max<std::size_t>(1, status.replicas());
  if (work.elements == 0) work.elements = status.elements();
  if (work.link.compute.count() > 0) return Done{};
  const v1::Task task = LONGHAUL_TRY(
      ask_for_task(connector, access.name, access.token, deadline_after(kProbeTimeout)));
  const Result<Job> job = job_of(task, catalogue());
  if (!job.ok()) return Error(job.error()).within("what the hub sent");
  work.link.compute = job->scenario.train.step_time;
  return Done{};
}

std::optional<Decision> decision_for(const ProbedLink& link, const PlanOptions& work) {
  if (work.elements == 0 || work.link.compute.count() <= 0) return std::nullopt;
  const Recipe recipe = find_recipe("auto").value();
  const RoundSizes sizes(recipe.codec, work.elements, work.replicas);
  const Conditions all(work.replicas, ReplicaConditions{.compute = work.link.compute,
                                                        .latency = link.round_trip / 2,
                                                        .up = rate_of(link.up),
                                                        .down = rate_of(link.down)});
  return make_planner({.kind = recipe.planner, .plan = recipe.plan}, sizes)->first(all);
}

nlohmann::ordered_json rate_json(const TransferSample& probed) {
  return {{"bits_per_s", rate_of(probed).bytes_per_second * 8},
          {"bytes", static_cast<std::uint64_t>(probed.bytes)},
          {"duration_s", probed.duration.count()}};
}

nlohmann::ordered_json probe_json(const HubAccess& access, const ProbedLink& link,
                                  const PlanOptions& work,
                                  const std::optional<Decision>& decision) {
  nlohmann::ordered_json json{{"hub", access.address},
                              {"round_trip_s", link.round_trip.count()},
                              {"latency_s", link.round_trip.count() / 2},
                              {"up", rate_json(link.up)},
                              {"down", rate_json(link.down)},
                              {"parameters", work.elements},
                              {"step_time_s", work.link.compute.count()},
                              {"replicas", work.replicas},
                              {"plan", nullptr}};
  if (!decision) return json;
  json["plan"] = plan_json(decision->plan);
  json["plan"].update({{"step_time_s", decision->step_time.count()},
                       {"efficiency", work.link.compute / decision->step_time},
                       {"reason", decision->reason}});
  return json;
}

std::string rate_line(const TransferSample& probed) {
  return to_string(rate_of(probed)) + " (" + bytes_text(static_cast<std::uint64_t>(probed.bytes)) +
         " in " + to_string(probed.duration) + ")\n";
}

std::string probe_text(const ProbedLink& link, const std::optional<Decision>& decision) {
  std::string text = "round trip  " + to_string(link.round_trip) + "\nup          " +
                     rate_line(link.up) + "down        " + rate_line(link.down);
  if (!decision)
    return text + "auto        tell --params and --step-time to see what it would choose here\n";
  return text + "auto        " + plan_text(decision->plan) + ", step time " +
         to_string(decision->step_time) + "\nbecause     " + decision->reason + '\n';
}

int run_probe(const VisitCommandOptions& arguments) {
  const Result<HubAccess> access = visit_access(arguments, "probe");
  if (!access.ok()) return complain("probe", access.error());
  Result<PlanOptions> work = work_given(arguments);
  if (!work.ok()) return complain("probe", work.error());
  const std::unique_ptr<Connector> connector = make_grpc_connector(access->address, access->tls);
  const Status completed = complete(*work, *connector, *access);
  if (!completed.ok()) return complain("probe", completed.error());
  const Clock clock;
  const TimePoint start = clock.now();
  LinkProbe probe(*connector, clock, [&](const std::string& what) {
    if (clock.now() - start > kQuiet) std::cerr << "measures " << what << '\n';
  });
  const Result<ProbedLink> link = probe.measure(access->name, access->token);
  if (!link.ok()) return complain("probe", link.error());
  const std::optional<Decision> decision = decision_for(*link, *work);
  if (arguments.json) {
    std::cout << probe_json(*access, *link, *work, decision).dump(2) << '\n';
  } else {
    std::cout << probe_text(*link, decision);
  }
  return kExitDone;
}

}  // namespace

void add_probe(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<VisitCommandOptions>();  // shared with the callback
  CLI::App* probe = program.add_subcommand("probe", "Measure the link to a hub");
  add_visit_options(*probe, *arguments);
  probe->add_option("--params", arguments->params,
                    "Parameters of the model, such as 124M (default: the run's, once it is known)");
  probe->add_option("--step-time", arguments->step_time,
                    "Compute time of a step, such as 250ms (default: the scenario's)");
  probe->footer(
      "Measures one connection for a few seconds, beside whatever runs on the hub: round trip, "
      "and\n"
      "the rate in each direction as its receiver sees it. Then says what `auto` would choose if\n"
      "all links were like this one.\n\nExamples:\n"
      "  longhaul probe --invite berlin.invite\n"
      "  longhaul probe --hub 127.0.0.1:7070 --params 124M --step-time 250ms --json");
  probe->callback([=, &run] { run = [=] { return run_probe(*arguments); }; });
}

}  // namespace longhaul::apps
