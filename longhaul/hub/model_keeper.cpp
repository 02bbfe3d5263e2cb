#include "longhaul/hub/model_keeper.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"
#include "longhaul/exchange/protocol.h"
#include "longhaul/plan/measurements.h"

namespace longhaul {
namespace {

std::unique_ptr<Planner> planner_of(const TrainingOptions& options, std::size_t elements) {
  if (options.engine.recipe.planner == PlannerKind::kNone) return nullptr;
  PlannerOptions planner = planner_options(options.engine);
  planner.may_look_ahead = planner.may_look_ahead && options.may_look_ahead;
  return make_planner(planner,
                      RoundSizes(options.engine.recipe.codec, elements, options.replicas, {},
                                 options.engine.recipe.way_down(), options.engine.layers));
}

RoundSize size_of(std::span<const WeightedPayload> sent, const RoundMean& mean) {
  RoundSize size;
  for (const WeightedPayload& one : sent)
    size.up = std::max(size.up, static_cast<double>(one.payload.size()));
  for (const DownLoad& one : mean.down)
    size.down = std::max(size.down, static_cast<double>(one.bytes));
  return size;
}

std::vector<WeightedPayload> sent_in(const ClosingRound& closing) {
  std::vector<WeightedPayload> sent;
  sent.reserve(closing.members.size());
  for (const Contribution& entry : closing.members)
    sent.push_back({.payload = entry.payload, .weight = entry.weight});
  return sent;
}

void note_contributors(const ClosingRound& closing, RoundOutcome& outcome) {
  for (const Contribution& entry : closing.members) {
    if (!entry.has_submitted) continue;
    outcome.contributors.push_back(
        {.slot = entry.slot, .digest = entry.payload.digest(), .attendance = entry.attendance});
    outcome.arrivals.push_back(entry.at);
  }
}

TrainingOptions with_plan(TrainingOptions options, const Plan& plan) {
  options.engine.recipe.plan = plan;
  return options;
}

std::unique_ptr<Follower> follower_of(const TrainingOptions& options, std::vector<float> initial) {
  const auto steps = options.steps > 0 ? std::optional(options.steps) : std::nullopt;
  return std::make_unique<Follower>(options.engine, std::move(initial), steps);
}

Mean mean_from(const JournalRound& round) {
  return {.round = round.id, .terms = {{.payload = round.mean}}, .next_plan = round.next_plan};
}

std::unique_ptr<MeanCompressor> compressor_of(const TrainingOptions& options, std::size_t elements,
                                              Workers& workers) {
  return options.engine.recipe.is_two_way ? make_mean_compressor(options.engine, elements, workers)
                                          : nullptr;
}

// What a snapshot holds beside the model's state: its layers, as a message, and
constexpr const char* kLayers = "layers";
// step and part of the name behind the last round that had closed when a snapshot was made.
constexpr const char* kClosedUntil = "closed_until";

}  // namespace

ModelKeeper::ModelKeeper(const TrainingOptions& options, const Decision& first,
                         std::unique_ptr<Follower> model,
                         std::unique_ptr<MeanCompressor> compressor, Workers& workers)
    : options_(options),
      workers_(workers),
      first_(first),
      model_(std::move(model)),
      compressor_(std::move(compressor)),
      journal_(limits_for_model(options.journal, model_->shared().size(), model_->parts())) {}

Result<std::unique_ptr<ModelKeeper>> ModelKeeper::start(const TrainingOptions& options,
                                                        std::vector<float> initial,
                                                        const Conditions& conditions,
                                                        Workers& workers) {
  const std::size_t elements = initial.size();
  std::unique_ptr<Planner> planner = planner_of(options, elements);
  if (planner && !conditions.empty()) planner->expect(conditions.size());
  const Decision first =
      planner ? planner->first(conditions)
              : Decision{.plan = options.engine.recipe.plan, .reason = "set by the recipe"};
  std::unique_ptr<ModelKeeper> keeper(new ModelKeeper(  // NOLINT: private constructor
      options, first, follower_of(with_plan(options, first.plan), std::move(initial)),
      compressor_of(options, elements, workers), workers));
  keeper->planner_ = std::move(planner);
  const Status kept = keeper->start_journal();
  if (!kept.ok()) return kept.error();
  return keeper;
}

namespace {

// What a directory holds, put together: a snapshot and the rounds that closed since.
struct Reopened {
  TrainingOptions options;
  std::unique_ptr<Follower> model;
  std::unique_ptr<MeanCompressor> compressor;
  Journal journal;
  Journal::Left left;  // without its state and rounds
};

Result<LayerTable> layers_in(const State& state, std::size_t elements) {
  const Result<ByteView> bytes = state.blob(kLayers);
  if (!bytes.ok()) return bytes.error();
  v1::LayerTable message;
  if (!message.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())))
    return Error{ErrorCode::kCorruptPayload, "layers: damaged"};
  return layers_from(message, elements);
}

Result<RoundId> closed_until_in(const State& state) {
  const auto until = state.value<std::vector<std::uint64_t>>(kClosedUntil);
  if (!until.ok()) return until.error();
  if (until->size() != 2 || until->back() > std::numeric_limits<std::uint32_t>::max())
    return Error{ErrorCode::kCorruptPayload, std::string(kClosedUntil) + ": not a step and a part"};
  return RoundId{.step = until->front(), .part = static_cast<std::uint32_t>(until->back())};
}

// A round that the snapshot has not merged happens again.
bool replay(const JournalRound& round, RoundId closed_until, Reopened& all) {
  if (round.id != all.model->next_to_close()) return false;
  if (all.model->open_round(round.id) != round.elements) return false;
  if (all.compressor && round.id >= closed_until) {
    if (round.whole.empty()) return false;
    RoundMean mean{.payload = round.whole};
    all.compressor->compress(mean, round.id.step);
  }
  all.model->closed(mean_from(round));
  return true;
}

// What the hub's copy is made of, before any round: layers, sizes and the state of the snapshot.
Result<Reopened> loaded(TrainingOptions options, const State& state, Workers& workers) {
  const auto shared = state.tensors.find("shared");
  if (shared == state.tensors.end())
    return Error{ErrorCode::kCorruptPayload, "a snapshot without a model"};
  const std::size_t elements = shared->second.size();
  Result<LayerTable> layers = layers_in(state, elements);
  if (!layers.ok()) return std::move(layers).error();
  options.engine.layers = std::move(layers).value();
  Reopened all{.options = options};
  all.model = follower_of(options, std::vector<float>(elements));
  all.compressor = compressor_of(options, elements, workers);
  Status done = all.model->load(state);
  if (done.ok() && all.compressor) done = all.compressor->load(state);
  if (!done.ok()) return std::move(done).error();
  return all;
}

// The snapshot's rounds happen again, and are at hand.
Status replay_all(Journal::Left& left, Reopened& all) {
  const Result<RoundId> closed_until = closed_until_in(left.state);
  if (!closed_until.ok()) return closed_until.error();
  const JournalOptions limits =
      limits_for_model(all.options.journal, all.model->shared().size(), all.model->parts());
  const RoundId unmerged = all.model->next_round();
  const bool has_lost = left.rounds.empty() && !left.loss.empty();
  all.journal = left.rounds.empty()
                    ? Journal(limits, has_lost ? unmerged : *closed_until, left.closed)
                    : Journal(limits, left.rounds.front().from, left.rounds.front().number);
  for (JournalRound& round : left.rounds) {
    if (round.id >= unmerged && !replay(round, *closed_until, all))
      return Error{ErrorCode::kCorruptPayload,
                   "round " + to_string(round.id) + " does not follow from its snapshot"};
    round.whole = {};  // needed for that only
    all.journal.add(std::move(round), all.model->next_round().step);
  }
  left.rounds.clear();
  return Done{};
}

std::string loss_text(const Reopened& all) {
  std::string text = all.options.directory.string() + ": ";
  for (const std::string& note : all.left.notes) text += note + ". ";
  return text + all.left.loss + ". The last good state is the one before round " +
         to_string(all.model->next_to_close());
}

// Without a model, if the directory holds none.
Result<Reopened> reopened(const TrainingOptions& options, Workers& workers) {
  Result<std::optional<Journal::Left>> left = Journal::read(options.directory, options.run);
  if (!left.ok()) return left.error();
  if (!left->has_value()) return Reopened{};
  Result<Reopened> all = loaded(options, (*left)->state, workers);
  if (!all.ok()) return std::move(all).error().within(options.directory.string());
  Status replayed = replay_all(**left, *all);
  if (!replayed.ok()) return std::move(replayed).error().within(options.directory.string());
  (*left)->state = {};
  all->left = std::move(**left);
  if (all->left.loss.empty()) return all;
  if (!options.accepts_loss)
    return Error{ErrorCode::kCorruptPayload,
                 loss_text(*all) +
                     ". Nothing was changed. A backup of the directory loses nothing; "
                     "--accept-loss goes on from the last good state, and keeps the damaged files "
                     "as *.damaged"};
  all->left.notes = {loss_text(*all) + ", which is used"};
  return all;
}

}  // namespace

Result<LastModel> last_model(const TrainingOptions& options) {
  Workers alone(1);
  Result<Reopened> all = reopened(options, alone);
  if (!all.ok()) return all.error();
  return LastModel{.model = std::move(all->model),
                   .layers = all->options.engine.layers,
                   .notes = std::move(all->left.notes)};
}

Result<std::unique_ptr<ModelKeeper>> ModelKeeper::resume(const TrainingOptions& options,
                                                         Workers& workers) {
  Result<Reopened> all = reopened(options, workers);
  if (!all.ok()) return all.error();
  if (!all->model) return std::unique_ptr<ModelKeeper>();
  const Decision first{.plan = all->model->plan()};
  std::unique_ptr<ModelKeeper> keeper(new ModelKeeper(  // NOLINT: private constructor
      all->options, first, std::move(all->model), std::move(all->compressor), workers));
  keeper->journal_ = std::move(all->journal);
  keeper->planner_ = planner_of(all->options, keeper->model_->shared().size());
  keeper->notes_ = std::move(all->left.notes);
  Status kept = set_aside(all->left.damaged);
  if (kept.ok()) kept = cut_off(all->left.torn);
  if (kept.ok()) kept = keeper->start_journal();
  if (!kept.ok()) return kept.error();
  remove_set_aside(all->left.damaged);
  return keeper;
}

// The first snapshot is there before anyone takes part.
Status ModelKeeper::start_journal() {
  if (!options_.directory.empty()) remove_unfinished(options_.directory);
  Status kept = keep_journal();
  return kept.ok() ? journal_.settle() : kept;
}

// A snapshot holds what is merged; rounds that closed and are not due yet are logged after it.
Status ModelKeeper::keep_journal() {
  if (options_.directory.empty()) return Done{};
  State state = model_->save();
  if (compressor_) compressor_->save(state);
  const RoundId end = journal_.end();
  state.values[kClosedUntil] = std::vector<std::uint64_t>{end.step, end.part};
  const std::string layers = to_message(options_.engine.layers).SerializeAsString();
  const ByteView bytes = std::as_bytes(std::span(layers));
  state.blobs[kLayers].assign(bytes.begin(), bytes.end());
  return journal_.keep_in(options_.directory, options_.run, std::move(state), model_->next_round());
}

Result<ModelKeeper::Closed> ModelKeeper::close(const ClosingRound& closing,
                                               const Conditions& conditions) {
  const std::size_t elements = model_->open_round(closing.round).value();
  const std::vector<WeightedPayload> sent = sent_in(closing);
  RoundMean mean = mean_of_round(sent, elements, workers_);
  RoundOutcome outcome{.round = closing.round,
                       .from = journal_.end(),
                       .members = closing.members.size(),
                       .size = size_of(sent, mean)};
  if (planner_ && !conditions.empty()) {
    planner_->expect(conditions.size());
    outcome.decision =
        planner_->round_closed(facts_of(sent, mean.payload, conditions, model_->plan()));
  }
  JournalRound round{
      .id = closing.round, .from = outcome.from, .number = journal_.closed(), .elements = elements};
  note_contributors(closing, outcome);
  round.contributors = outcome.contributors;
  if (compressor_) {
    round.whole = mean.payload;
    compressor_->compress(mean, round.id.step);
  }
  round.mean = mean.payload;
  if (outcome.decision) round.next_plan = outcome.decision->plan;
  Status logged = journal_.log(round);
  if (!logged.ok()) return logged.error();
  round.whole = {};
  model_->closed(mean_from(round));
  journal_.add(round, model_->next_round().step);
  outcome.next = model_->next_to_close();
  if (journal_.wants_snapshot()) {
    Status kept = keep_journal();
    if (!kept.ok()) return kept.error();
  }
  return Closed{.outcome = std::move(outcome),
                .round = std::move(round),
                .is_forwarded = std::ranges::find(mean.down, WayDown::kForwarded, &DownLoad::way) !=
                                mean.down.end(),
                .standing = model_->standing()};
}

}  // namespace longhaul
