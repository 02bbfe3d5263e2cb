#include "apps/longhaul_torch/rank_job.h"

#include <unistd.h>

#include <string_view>
#include <utility>

#include "apps/longhaul/command/installed.h"
#include "longhaul/access/names.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/engine.h"

namespace longhaul::apps {

namespace {

// The parts of the model are not known yet, and do not matter.
Status check_all_reduce(const Job& job) {
  Status fits = check_plan(job.recipe.plan, {.recipe = job.recipe, .averages_in_place = true});
  if (fits.ok()) return fits;
  return Error{ErrorCode::kInvalidArgument,
               "--all-reduce: recipe " + job.recipe_text + ": " + fits.error().message};
}

}  // namespace

trainer::Environment environment() {
  trainer::Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t end = text.find('=');
    if (end != std::string_view::npos) all.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return all;
}

Result<RankJob> rank_job(const TrainCommandOptions& arguments,
                         const trainer::Environment& environment) {
  if (arguments.checkpoint.ends_with(".safetensors"))
    return Error{ErrorCode::kInvalidArgument,
                 "--checkpoint: expected a directory, as every rank has files of its own, got " +
                     arguments.checkpoint};
  TaskOptions request{
      .scenario = arguments.collective, .settings = arguments.settings, .recipe = arguments.recipe};
  Scenario scenario = LONGHAUL_TRY(scenario_of(request, catalogue()));
  request.seed = arguments.seed.value_or(scenario.train.seed);
  v1::Task task = LONGHAUL_TRY(task_of(request, catalogue()));
  Job job = LONGHAUL_TRY(job_of(task, catalogue()));
  job.scenario = std::move(scenario);  // its paths are those of this machine
  job.scenario.train.seed = request.seed;
  if (!arguments.data.empty()) job.scenario.data.path = arguments.data;
  if (job.recipe.is_free || job.recipe.planner == PlannerKind::kClairvoyant)
    return Error{ErrorCode::kInvalidArgument,
                 "--recipe: " + job.recipe_text + " is for the lab: no link is free or foreseen"};
  LONGHAUL_TRY(arguments.all_reduce ? check_all_reduce(job) : Done{});
  trainer::RankOptions place = LONGHAUL_TRY(trainer::find_rank(environment));
  const std::size_t replicas = job.scenario.replicas.size();
  if (place.size != replicas)
    return Error{ErrorCode::kInvalidArgument,
                 place.launcher + " started " + std::to_string(place.size) + " ranks, but " +
                     arguments.collective + " has " + std::to_string(replicas) +
                     " replicas (--set replica.count=N changes that)"};
  if (job.scenario.train.stop == StopAt::kTarget)
    return Error{ErrorCode::kInvalidArgument,
                 "train.stop: a collective does all its steps; add --set train.stop=steps"};
  std::string rendezvous =
      LONGHAUL_TRY(trainer::find_rendezvous(environment, arguments.rendezvous));
  return RankJob{std::move(place), std::move(rendezvous), std::move(task), std::move(job)};
}

Result<std::unique_ptr<trainer::C10dGroup>> meet(const RankJob& rank,
                                                 const trainer::Environment& environment) {
  const Result<access::Address> address = access::parse_address(rank.rendezvous);
  if (!address.ok()) return Error(address.error()).within("rendezvous");
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  trainer::RankOptions options = rank.place;
  options.host = address->host;
  options.port = address->port;
  options.is_store_there = value("TORCHELASTIC_USE_AGENT_STORE") == "True";
  options.attempt = value("TORCHELASTIC_RESTART_COUNT");
  options.interface = value("GLOO_SOCKET_IFNAME");
  options.is_cancelled = is_interrupted;
  return trainer::C10dGroup::meet(options);
}

}  // namespace longhaul::apps
