#include "longhaul/hub/training.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/plan/measurements.h"

namespace longhaul {
namespace {

constexpr std::size_t kSentRounds = 8;  // those that are on their way to someone right now

std::unique_ptr<Planner> planner_of(const TrainingSetup& setup, std::size_t elements) {
  if (setup.engine.recipe.planner == PlannerKind::kNone) return nullptr;
  return make_planner({.kind = setup.engine.recipe.planner,
                       .plan = setup.engine.recipe.plan,
                       .may_look_ahead = setup.may_look_ahead,
                       .seed = setup.engine.seed,
                       .steps = setup.engine.lr.steps},
                      RoundSizes(setup.engine.recipe.codec, elements, setup.replicas));
}

EngineSetup with_plan(EngineSetup setup, const Plan& plan) {
  setup.recipe.plan = plan;
  return setup;
}

Mean mean_from(const JournalRound& round, std::size_t elements) {
  auto values = std::make_shared<std::vector<float>>(elements);
  add(PayloadView::parse(*round.mean, elements).value(), 1.0F, *values);
  return {.round = {.step = round.step}, .values = std::move(values), .next_plan = round.next_plan};
}

}  // namespace

std::size_t SentPayloads::bytes_for(std::size_t slot) const {
  std::size_t bytes = 0;
  for (const Part& part : parts) bytes += part.slot == slot ? 0 : part.payload->size();
  return bytes;
}

Training::Training(const TrainingSetup& setup, std::vector<float> initial, const Decision& first,
                   std::uint64_t first_round, Workers& workers)
    : setup_(setup),
      workers_(workers),
      first_(first),
      model_(std::make_unique<Follower>(with_plan(setup.engine, first.plan), std::move(initial))),
      book_(setup.policy, first_round),
      journal_(limits_for_model(setup.journal, model_->shared().size())) {}

Result<std::unique_ptr<Training>> Training::start(const TrainingSetup& setup,
                                                  std::vector<float> initial,
                                                  const Conditions& conditions, Workers& workers) {
  const Status runs = runs_over_a_hub(setup.engine.recipe);
  if (!runs.ok()) return runs.error();
  std::unique_ptr<Planner> planner = planner_of(setup, initial.size());
  const Decision first =
      planner ? planner->first(conditions)
              : Decision{.plan = setup.engine.recipe.plan, .reason = "set by the recipe"};
  std::unique_ptr<Training> training(
      new Training(setup, std::move(initial), first, 0, workers));  // NOLINT: private constructor
  training->planner_ = std::move(planner);
  const Status kept = training->start_journal();
  if (!kept.ok()) return kept.error();
  return training;
}

namespace {

// What a directory holds, put together: the newest snapshot and the rounds that closed since.
struct Reopened {
  std::unique_ptr<Follower> model;
  Journal journal;
  std::uint64_t next_round = 0;
};

// Without a model, if the directory holds none.
Result<Reopened> reopened(const TrainingSetup& setup) {
  Result<std::optional<Journal::Left>> left = Journal::read(setup.directory);
  if (!left.ok()) return left.error();
  Reopened all{.journal = Journal(setup.journal)};
  if (!left->has_value()) return all;
  const auto shared = (*left)->state.tensors.find("shared");
  if (shared == (*left)->state.tensors.end())
    return Error{ErrorCode::kCorruptPayload,
                 setup.directory.string() + ": a snapshot without a model"};
  const std::size_t elements = shared->second.size();
  all.model = std::make_unique<Follower>(setup.engine, std::vector<float>(elements));
  Status loaded = all.model->load((*left)->state);
  if (!loaded.ok()) return std::move(loaded).error().within(setup.directory.string());
  all.next_round = all.model->next_round();
  const JournalLimits limits = limits_for_model(setup.journal, elements);
  all.journal = Journal(limits);
  for (JournalRound& round : (*left)->rounds) {
    if (!PayloadView::parse(*round.mean, elements).ok()) break;
    if (round.step == all.next_round) {
      all.model->closed(mean_from(round, elements));
      ++all.next_round;
    }
    all.journal.add(std::move(round), all.model->next_round());
  }
  // What is left of older logs does not reach the snapshot: of no use to anyone.
  if (!all.journal.ends_before(all.next_round)) all.journal = Journal(limits);
  return all;
}

}  // namespace

Result<std::unique_ptr<Follower>> last_model(const TrainingSetup& setup) {
  Result<Reopened> all = reopened(setup);
  if (!all.ok()) return all.error();
  return std::move(all->model);
}

Result<std::unique_ptr<Training>> Training::resume(const TrainingSetup& setup, Workers& workers) {
  const Status runs = runs_over_a_hub(setup.engine.recipe);
  if (!runs.ok()) return runs.error();
  Result<Reopened> all = reopened(setup);
  if (!all.ok()) return all.error();
  if (!all->model) return std::unique_ptr<Training>();
  const std::size_t elements = all->model->shared().size();
  std::unique_ptr<Training> training(new Training(  // NOLINT: private constructor
      setup, std::vector<float>(elements), Decision{.plan = all->model->plan()}, all->next_round,
      workers));
  training->model_ = std::move(all->model);
  training->journal_ = std::move(all->journal);
  training->planner_ = planner_of(setup, elements);
  const Status kept = training->start_journal();
  if (!kept.ok()) return kept.error();
  return training;
}

// The first snapshot is there before anyone takes part.
Status Training::start_journal() {
  Status kept = keep_journal();
  return kept.ok() ? journal_.settle() : kept;
}

// A snapshot holds what is merged; rounds that closed and are not due yet are logged after it.
Status Training::keep_journal() {
  if (setup_.directory.empty()) return Done{};
  return journal_.keep_in(setup_.directory, model_->save(), model_->next_round());
}

Result<RoundOutcome> Training::close_next(const Conditions& conditions) {
  ClosingRound closing = book_.close();
  const std::size_t elements = model_->shared().size();
  std::vector<Submission> submissions;
  submissions.reserve(closing.members.size());
  float weights = 0;
  for (const Entry& entry : closing.members) {
    submissions.push_back({.weight = entry.weight, .payload = entry.payload});
    weights += entry.weight;
  }
  RoundMean mean = mean_of_round(submissions, elements, workers_).value();
  RoundOutcome outcome{.step = closing.step, .members = closing.members.size()};
  if (planner_ && !conditions.empty())
    outcome.decision =
        planner_->round_closed(facts_of(submissions, mean.values, conditions, model_->plan()));
  SentPayloads sent{.step = closing.step};
  JournalRound round{.step = closing.step};
  for (Entry& entry : closing.members) {
    if (entry.has_submitted) {
      round.contributors.push_back(entry.slot);
      round.digests.push_back(digest_of(entry.payload));
    }
    if (entry.payload.empty()) continue;
    sent.parts.push_back({.slot = entry.slot,
                          .share = entry.weight / weights,
                          .payload = std::make_shared<const ByteBuffer>(std::move(entry.payload))});
  }
  outcome.contributors = round.contributors;
  outcome.digests = round.digests;
  round.mean = std::make_shared<const ByteBuffer>(std::move(mean.payload));
  if (outcome.decision) round.next_plan = outcome.decision->plan;
  Status logged = journal_.log(round);
  if (!logged.ok()) return logged.error();
  model_->closed({.round = {.step = round.step},
                  .values = std::make_shared<const std::vector<float>>(std::move(mean.values)),
                  .next_plan = round.next_plan});
  journal_.add(std::move(round), model_->next_round());
  while (!sent_.empty() && sent_.front().step + kSentRounds <= outcome.step) sent_.pop_front();
  // Payloads are as much as the mean, for each replica: only where one of them is better off.
  if (std::ranges::find(mean.down, WayDown::kForwarded, &DownLoad::way) != mean.down.end())
    sent_.push_back(std::move(sent));
  if (journal_.wants_snapshot()) {
    Status kept = keep_journal();
    if (!kept.ok()) return kept.error();
  }
  return outcome;
}

const SentPayloads* Training::sent(std::uint64_t step) const {
  const auto found = std::ranges::find(sent_, step, &SentPayloads::step);
  return found == sent_.end() ? nullptr : &*found;
}

}  // namespace longhaul
