#include "longhaul/hub/training.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
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
                      RoundSizes(setup.engine.recipe.codec, elements, setup.replicas, {},
                                 setup.engine.recipe.means_down(), setup.engine.layers));
}

RoundSize size_of(std::span<const Submission> submissions, const RoundMean& mean) {
  RoundSize size;
  for (const Submission& one : submissions)
    size.up = std::max(size.up, static_cast<double>(one.payload.size()));
  for (const DownLoad& one : mean.down)
    size.down = std::max(size.down, static_cast<double>(one.bytes));
  return size;
}

TrainingSetup with_plan(TrainingSetup setup, const Plan& plan) {
  setup.engine.recipe.plan = plan;
  return setup;
}

std::unique_ptr<Follower> follower_of(const TrainingSetup& setup, std::vector<float> initial) {
  const auto steps = setup.steps > 0 ? std::optional(setup.steps) : std::nullopt;
  return std::make_unique<Follower>(setup.engine, std::move(initial), steps);
}

Mean mean_from(const JournalRound& round) {
  auto values = std::make_shared<std::vector<float>>(round.elements);
  add(PayloadView::parse(*round.mean, round.elements).value(), 1.0F, *values);
  return {.round = {.step = round.step, .part = round.part},
          .values = std::move(values),
          .next_plan = round.next_plan};
}

std::unique_ptr<MeanCompressor> compressor_of(const TrainingSetup& setup, std::size_t elements,
                                              Workers& workers) {
  return setup.engine.recipe.is_two_way ? make_mean_compressor(setup.engine, elements, workers)
                                        : nullptr;
}

// What a snapshot holds beside the model's state: its layers, as a message, and
constexpr const char* kLayers = "layers";
// the step after the last round that had closed when a snapshot was made.
constexpr const char* kClosedUntil = "closed_until";

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
      model_(follower_of(with_plan(setup, first.plan), std::move(initial))),
      compressor_(compressor_of(setup, model_->shared().size(), workers)),
      book_(setup.policy, first_round),
      journal_(limits_for_model(setup.journal, model_->shared().size())) {}

Result<std::unique_ptr<Training>> Training::start(const TrainingSetup& setup,
                                                  std::vector<float> initial,
                                                  const Conditions& conditions, Workers& workers) {
  std::unique_ptr<Planner> planner = planner_of(setup, initial.size());
  if (planner && !conditions.empty()) planner->expect(conditions.size());
  const Decision first =
      planner ? planner->first(conditions)
              : Decision{.plan = setup.engine.recipe.plan, .reason = "set by the recipe"};
  std::unique_ptr<Training> training(
      new Training(setup, std::move(initial), first, 0, workers));  // NOLINT: private constructor
  training->book_.expect(training->model_->next_to_close());
  training->planner_ = std::move(planner);
  const Status kept = training->start_journal();
  if (!kept.ok()) return kept.error();
  return training;
}

namespace {

// What a directory holds, put together: the newest snapshot and the rounds that closed since.
struct Reopened {
  TrainingSetup setup;
  std::unique_ptr<Follower> model;
  std::unique_ptr<MeanCompressor> compressor;
  Journal journal;
};

Result<LayerTable> layers_in(const State& state, std::size_t elements) {
  const Result<ByteView> bytes = state.blob(kLayers);
  if (!bytes.ok()) return bytes.error();
  v1::LayerTable message;
  if (!message.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())))
    return Error{ErrorCode::kCorruptPayload, "layers: damaged"};
  return layers_from(message, elements);
}

bool is_undamaged(const JournalRound& round) {
  return PayloadView::parse(*round.mean, round.elements).ok() &&
         (!round.whole || PayloadView::parse(*round.whole, round.elements).ok());
}

// A round that the snapshot has not merged happens again.
bool replay(const JournalRound& round, std::uint64_t closed_until, Reopened& all) {
  const auto open = all.model->open_round(round.step);
  if (round.step != all.model->next_to_close()) return false;
  if (!open || open->part != round.part || open->elements != round.elements) return false;
  if (all.compressor && round.step >= closed_until) {
    if (!round.whole) return false;
    RoundMean mean{.values = std::vector<float>(round.elements)};
    add(PayloadView::parse(*round.whole, round.elements).value(), 1.0F, mean.values);
    all.compressor->compress(mean, round.step);
  }
  all.model->closed(mean_from(round));
  return true;
}

// Without a model, if the directory holds none.
Result<Reopened> reopened(TrainingSetup setup, Workers& workers) {
  Result<std::optional<Journal::Left>> left = Journal::read(setup.directory);
  if (!left.ok()) return left.error();
  if (!left->has_value()) return Reopened{};
  const State& state = (*left)->state;
  const auto shared = state.tensors.find("shared");
  if (shared == state.tensors.end())
    return Error{ErrorCode::kCorruptPayload,
                 setup.directory.string() + ": a snapshot without a model"};
  const std::size_t elements = shared->second.size();
  Result<LayerTable> layers = layers_in(state, elements);
  if (!layers.ok()) return std::move(layers).error().within(setup.directory.string());
  setup.engine.layers = std::move(layers).value();
  Reopened all{.setup = setup};
  all.model = follower_of(setup, std::vector<float>(elements));
  all.compressor = compressor_of(setup, elements, workers);
  Status loaded = all.model->load(state);
  if (loaded.ok() && all.compressor) loaded = all.compressor->load(state);
  if (!loaded.ok()) return std::move(loaded).error().within(setup.directory.string());
  auto closed_until = state.value<std::uint64_t>(kClosedUntil);
  if (!closed_until.ok()) return std::move(closed_until).error().within(setup.directory.string());
  const std::uint64_t unmerged = all.model->next_round();
  const JournalLimits limits = limits_for_model(setup.journal, elements);
  std::vector<JournalRound>& rounds = (*left)->rounds;
  all.journal = Journal(limits, rounds.empty() ? *closed_until : rounds.front().from);
  for (JournalRound& round : rounds) {
    if (!is_undamaged(round)) break;
    if (round.step >= unmerged && !replay(round, *closed_until, all))
      return Error{ErrorCode::kCorruptPayload, setup.directory.string() + ": round " +
                                                   std::to_string(round.step) +
                                                   " does not follow from its snapshot"};
    round.whole.reset();  // needed for that only
    all.journal.add(std::move(round), all.model->next_round());
  }
  if (all.journal.end() >= *closed_until) return all;
  // What is left of older logs does not reach the snapshot: of no use to anyone.
  if (unmerged < *closed_until)
    return Error{ErrorCode::kCorruptPayload,
                 setup.directory.string() + ": rounds that its snapshot needs are missing"};
  all.journal = Journal(limits, *closed_until);
  return all;
}

}  // namespace

Result<std::unique_ptr<Follower>> last_model(const TrainingSetup& setup, LayerTable* layers) {
  Workers alone(1);
  Result<Reopened> all = reopened(setup, alone);
  if (!all.ok()) return all.error();
  if (layers != nullptr) *layers = all->setup.engine.layers;
  return std::move(all->model);
}

Result<std::unique_ptr<Training>> Training::resume(const TrainingSetup& setup, Workers& workers) {
  Result<Reopened> all = reopened(setup, workers);
  if (!all.ok()) return all.error();
  if (!all->model) return std::unique_ptr<Training>();
  const std::size_t elements = all->model->shared().size();
  std::unique_ptr<Training> training(new Training(  // NOLINT: private constructor
      all->setup, std::vector<float>(elements), Decision{.plan = all->model->plan()},
      all->model->next_to_close(), workers));
  training->model_ = std::move(all->model);
  training->compressor_ = std::move(all->compressor);
  training->journal_ = std::move(all->journal);
  training->planner_ = planner_of(all->setup, elements);
  const Status kept = training->start_journal();
  if (!kept.ok()) return kept.error();
  return training;
}

// The first snapshot is there before anyone takes part.
Status Training::start_journal() {
  if (!setup_.directory.empty()) remove_unfinished(setup_.directory);
  Status kept = keep_journal();
  return kept.ok() ? journal_.settle() : kept;
}

// A snapshot holds what is merged; rounds that closed and are not due yet are logged after it.
Status Training::keep_journal() {
  if (setup_.directory.empty()) return Done{};
  State state = model_->save();
  if (compressor_) compressor_->save(state);
  state.values[kClosedUntil] = journal_.end();
  const std::string layers = to_message(setup_.engine.layers).SerializeAsString();
  const ByteView bytes = std::as_bytes(std::span(layers));
  state.blobs[kLayers].assign(bytes.begin(), bytes.end());
  return journal_.keep_in(setup_.directory, std::move(state), model_->next_round());
}

std::optional<Contributed> Training::last_of(std::size_t slot, std::uint64_t from) const {
  std::optional<Contributed> open = book_.last_of(slot);
  return open ? open : journal_.last_of(slot, from);
}

Result<RoundOutcome> Training::close_next(const Conditions& conditions) {
  ClosingRound closing = book_.close();
  const Follower::OpenRound open = model_->open_round(closing.step).value();
  std::vector<Submission> submissions;
  submissions.reserve(closing.members.size());
  float weights = 0;
  for (const Entry& entry : closing.members) {
    submissions.push_back({.weight = entry.weight, .payload = entry.payload});
    weights += entry.weight;
  }
  RoundMean mean = mean_of_round(submissions, open.elements, workers_).value();
  RoundOutcome outcome{.step = closing.step,
                       .from = journal_.end(),
                       .members = closing.members.size(),
                       .size = size_of(submissions, mean)};
  if (planner_ && !conditions.empty()) {
    planner_->expect(conditions.size());
    outcome.decision =
        planner_->round_closed(facts_of(submissions, mean.values, conditions, model_->plan()));
  }
  SentPayloads sent{.step = closing.step};
  JournalRound round{
      .step = closing.step, .from = outcome.from, .part = open.part, .elements = open.elements};
  for (Entry& entry : closing.members) {
    if (entry.has_submitted) {
      round.contributors.push_back({.slot = entry.slot,
                                    .digest = digest_of(entry.payload),
                                    .attendance = std::move(entry.attendance)});
      outcome.arrivals.push_back(entry.at);
    }
    if (entry.payload.empty()) continue;
    sent.parts.push_back({.slot = entry.slot,
                          .share = entry.weight / weights,
                          .payload = std::make_shared<const ByteBuffer>(std::move(entry.payload))});
  }
  outcome.contributors = round.contributors;
  if (compressor_) {
    round.whole = std::make_shared<const ByteBuffer>(std::move(mean.payload));
    compressor_->compress(mean, round.step);
  }
  round.mean = std::make_shared<const ByteBuffer>(std::move(mean.payload));
  if (outcome.decision) round.next_plan = outcome.decision->plan;
  Status logged = journal_.log(round);
  if (!logged.ok()) return logged.error();
  round.whole.reset();
  model_->closed({.round = {.step = round.step, .part = round.part},
                  .values = std::make_shared<const std::vector<float>>(std::move(mean.values)),
                  .next_plan = round.next_plan});
  journal_.add(std::move(round), model_->next_round());
  outcome.next = model_->next_to_close();
  book_.expect(outcome.next);
  const auto period = static_cast<std::uint64_t>(model_->plan().period_steps);
  while (!sent_.empty() && sent_.front().step + kSentRounds * period <= outcome.step)
    sent_.pop_front();
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
