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
  RoundSizes sizes(options.engine.recipe.codec, elements, options.replicas, {},
                   options.engine.recipe.way_down(), options.engine.layers);
  return options.planner ? options.planner(planner, std::move(sizes))
                         : make_planner(planner, std::move(sizes));
}

// A model that goes by layer now and then keeps as many rounds as if it always did.
JournalOptions journal_limits(const TrainingOptions& options, const Follower& model) {
  const std::size_t parts = planner_options(options.engine).parts.layers.size();
  return limits_for_model(options.journal, model.shared().size(), std::max(parts, model.parts()));
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
    outcome.round.contributors.push_back(
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

// Entries of a snapshot beside the model's state: its layers, as a message, and
constexpr const char* kLayers = "layers";
// step and part of the name behind the last round that had closed when a snapshot was made.
constexpr const char* kClosedUntil = "closed_until";

}  // namespace

ModelKeeper::ModelKeeper(const TrainingOptions& options, Decision first,
                         std::unique_ptr<Follower> model,
                         std::unique_ptr<MeanCompressor> compressor, Workers& workers)
    : options_(options),
      workers_(workers),
      first_(std::move(first)),
      model_(std::move(model)),
      compressor_(std::move(compressor)),
      journal_(journal_limits(options, *model_)) {}

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

std::string loss_text(const std::filesystem::path& directory, const Journal::Left& left,
                      RoundId next) {
  std::string text = directory.string() + ": ";
  for (const std::string& note : left.notes) text += note + ". ";
  return text + left.loss + ". The last good state is the one before round " + to_string(next);
}

}  // namespace

// The hub's copy before any round: layers, sizes and the state of the snapshot.
Result<std::unique_ptr<ModelKeeper>> ModelKeeper::loaded(TrainingOptions options,
                                                         const State& state, Workers& workers) {
  const auto shared = state.tensors.find("shared");
  if (shared == state.tensors.end())
    return Error{ErrorCode::kCorruptPayload, "a snapshot without a model"};
  const std::size_t elements = shared->second.size();
  Result<LayerTable> layers = layers_in(state, elements);
  if (!layers.ok()) return std::move(layers).error();
  options.engine.layers = std::move(layers).value();
  std::unique_ptr<ModelKeeper> keeper(new ModelKeeper(  // NOLINT: private constructor
      options, {}, follower_of(options, std::vector<float>(elements)),
      compressor_of(options, elements, workers), workers));
  LONGHAUL_TRY(keeper->model_->load(state));
  if (keeper->compressor_) LONGHAUL_TRY(keeper->compressor_->load(state));
  return keeper;
}

// A round that the snapshot has not merged happens again.
bool ModelKeeper::replay(const JournalRound& round, RoundId closed_until) {
  if (round.id != model_->next_to_close()) return false;
  if (model_->open_round(round.id) != round.elements) return false;
  if (compressor_ && round.id >= closed_until) {
    if (round.whole.empty()) return false;
    RoundMean mean{.payload = round.whole};
    compressor_->compress(mean, round.id.step);
  }
  model_->closed(mean_from(round));
  return true;
}

// The snapshot's rounds happen again, and are at hand.
Status ModelKeeper::replay_all() {
  const RoundId closed_until = LONGHAUL_TRY(closed_until_in(left_.state));
  const JournalOptions limits = journal_limits(options_, *model_);
  const RoundId unmerged = model_->next_round();
  const bool has_lost = left_.rounds.empty() && !left_.loss.empty();
  journal_ = left_.rounds.empty()
                 ? Journal(limits, has_lost ? unmerged : closed_until, left_.closed)
                 : Journal(limits, left_.rounds.front().from, left_.rounds.front().number);
  for (JournalRound& round : left_.rounds) {
    if (round.id >= unmerged && !replay(round, closed_until))
      return Error{ErrorCode::kCorruptPayload,
                   "round " + to_string(round.id) + " does not follow from its snapshot"};
    round.whole = {};  // needed for that only
    journal_.add(std::move(round), model_->next_round().step);
  }
  left_.rounds.clear();
  left_.state = {};
  return Done{};
}

Result<std::unique_ptr<ModelKeeper>> ModelKeeper::read(const TrainingOptions& options,
                                                       Workers& workers) {
  std::optional<Journal::Left> left = LONGHAUL_TRY(Journal::read(options.directory, options.run));
  if (!left) return std::unique_ptr<ModelKeeper>();
  Result<std::unique_ptr<ModelKeeper>> made = loaded(options, left->state, workers);
  if (!made.ok()) return std::move(made).error().within(options.directory.string());
  ModelKeeper& keeper = **made;
  keeper.left_ = std::move(*left);
  Status replayed = keeper.replay_all();
  if (!replayed.ok()) return std::move(replayed).error().within(options.directory.string());
  keeper.first_ = {.plan = keeper.model_->plan()};
  if (keeper.left_.loss.empty()) return made;
  const std::string loss =
      loss_text(options.directory, keeper.left_, keeper.model_->next_to_close());
  if (!options.accepts_loss)
    return Error{ErrorCode::kCorruptPayload,
                 loss +
                     ". Nothing was changed. A backup of the directory loses nothing; "
                     "--accept-loss goes on from the last good state, and keeps the damaged files "
                     "as *.damaged"};
  keeper.left_.notes = {loss + ", which is used"};
  return made;
}

Result<std::unique_ptr<ModelKeeper>> ModelKeeper::resume(const TrainingOptions& options,
                                                         Workers& workers) {
  std::unique_ptr<ModelKeeper> keeper = LONGHAUL_TRY(read(options, workers));
  if (!keeper) return keeper;
  keeper->planner_ = planner_of(keeper->options_, keeper->model_->shared().size());
  LONGHAUL_TRY(set_aside(keeper->left_.damaged));
  LONGHAUL_TRY(cut_off(keeper->left_.torn));
  LONGHAUL_TRY(keeper->start_journal());
  remove_set_aside(keeper->left_.damaged);
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

Result<RoundOutcome> ModelKeeper::close(const ClosingRound& closing, const Conditions& conditions) {
  const std::size_t elements = model_->open_round(closing.round).value();
  const std::vector<WeightedPayload> sent = sent_in(closing);
  RoundMean mean = mean_of_round(sent, elements, workers_);
  RoundOutcome outcome{.round = {.id = closing.round,
                                 .from = journal_.end(),
                                 .number = journal_.closed(),
                                 .elements = elements},
                       .members = closing.members.size(),
                       .size = size_of(sent, mean)};
  JournalRound& round = outcome.round;
  note_contributors(closing, outcome);
  if (planner_ && !conditions.empty()) {
    planner_->expect(conditions.size());
    outcome.decision =
        planner_->round_closed(facts_of(sent, mean.payload, conditions, model_->plan()));
  }
  if (outcome.decision) round.next_plan = outcome.decision->plan;
  if (compressor_) {
    round.whole = mean.payload;
    compressor_->compress(mean, round.id.step);
  }
  round.mean = mean.payload;
  LONGHAUL_TRY(journal_.log(round));
  round.whole = {};
  model_->closed(mean_from(round));
  journal_.add(round, model_->next_round().step);
  if (journal_.wants_snapshot()) LONGHAUL_TRY(keep_journal());
  outcome.is_forwarded =
      std::ranges::find(mean.down, WayDown::kForwarded, &DownLoad::way) != mean.down.end();
  outcome.standing = model_->standing();
  return outcome;
}

}  // namespace longhaul
