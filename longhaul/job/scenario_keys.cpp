#include "longhaul/job/scenario_keys.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "longhaul/job/scenario_domain.h"
#include "longhaul/sync/recipe.h"

namespace longhaul {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMillion = 1'000'000;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// A row for the field that `field` finds in a draft. Its default is the field's own.
template <typename T, typename Field>
ScenarioKey row(const char* table, const char* name, Domain<T> domain, Field field) {
  using Stored = std::remove_reference_t<decltype(field(std::declval<Draft&>()))>;
  ScenarioKey key{.table = table, .name = name, .expected = domain.expected};
  if constexpr (kIsOptional<Stored>) {
    key.fallback = "the recipe's";
  } else {
    Draft draft;
    key.fallback = domain.show(static_cast<T>(field(draft)));
  }
  key.show = [show = domain.show, field](Draft& draft) -> std::string {
    if constexpr (kIsOptional<Stored>) {
      return field(draft) ? show(static_cast<T>(*field(draft))) : "";
    } else {
      return show(static_cast<T>(field(draft)));
    }
  };
  key.set = [read = std::move(domain.read), field](Draft& draft, const RawValue& value) {
    const std::optional<T> got = read(value);
    if (got) field(draft) = static_cast<Stored>(*got);
    return got.has_value();
  };
  return key;
}

ScenarioKey path_row(ScenarioKey key) {
  key.is_path = true;
  return key;
}

ScenarioKey with_fallback(ScenarioKey key, const std::string& fallback) {
  key.fallback = fallback;
  return key;
}

// A path of members, such as scenario.train.lr, which no parentheses may enclose.
// NOLINTBEGIN(bugprone-macro-parentheses)
// clang-format off
#define LONGHAUL_FIELD(member) [](Draft& draft) -> auto& { return draft.member; }
// clang-format on
// NOLINTEND(bugprone-macro-parentheses)

// A name of either list; without any, every name.
Domain<std::string> one_of_both(std::vector<std::string> names,
                                const std::vector<std::string>& more,
                                const std::string& otherwise) {
  names.insert(names.end(), more.begin(), more.end());
  return names.empty() ? any_text(otherwise) : one_of(names);
}

void add_model_and_data(std::vector<ScenarioKey>& keys, const Catalogue& catalogue) {
  const Domain<std::uint64_t> size = whole(0, kMillion);
  keys.push_back(row("model", "name",
                     one_of_both(catalogue.image_models, catalogue.text_models, "a model's name"),
                     LONGHAUL_FIELD(scenario.model.name)));
  keys.push_back(row("model", "layers", size, LONGHAUL_FIELD(scenario.model.layers)));
  keys.push_back(row("model", "width", size, LONGHAUL_FIELD(scenario.model.width)));
  keys.push_back(row("model", "heads", size, LONGHAUL_FIELD(scenario.model.heads)));
  keys.push_back(row("model", "context", size, LONGHAUL_FIELD(scenario.model.context)));
  keys.push_back(row("data", "kind",
                     one_of_both(catalogue.image_data, catalogue.text_data, "a data set's name"),
                     LONGHAUL_FIELD(scenario.data.kind)));
  keys.push_back(path_row(row("data", "path", any_text("a directory or, for text, a file"),
                              LONGHAUL_FIELD(scenario.data.path))));
  keys.push_back(row("data", "split", one_of({"iid", "shards", "dirichlet"}),
                     LONGHAUL_FIELD(scenario.data.split)));
  keys.push_back(row("data", "dirichlet", real_above(0), LONGHAUL_FIELD(scenario.data.dirichlet)));
}

void add_train(std::vector<ScenarioKey>& keys) {
  keys.push_back(row("train", "batch", whole(1, kMillion), LONGHAUL_FIELD(scenario.train.batch)));
  keys.push_back(row("train", "lr", real_above(0), LONGHAUL_FIELD(scenario.train.lr)));
  keys.push_back(
      row("train", "schedule",
          one_of<LrShape>({{"constant", LrShape::kConstant}, {"cosine", LrShape::kCosine}}),
          LONGHAUL_FIELD(scenario.train.schedule)));
  keys.push_back(row("train", "warmup_steps", whole(0, 100 * kMillion),
                     LONGHAUL_FIELD(scenario.train.warmup_steps)));
  keys.push_back(row("train", "optimizer",
                     one_of<OptimizerKind>({{"sgd", OptimizerKind::kSgd},
                                            {"momentum", OptimizerKind::kMomentum},
                                            {"nesterov", OptimizerKind::kNesterov},
                                            {"adamw", OptimizerKind::kAdamW}}),
                     LONGHAUL_FIELD(scenario.train.optimizer)));
  keys.push_back(
      row("train", "momentum", real_from(0, 0.9999), LONGHAUL_FIELD(scenario.train.momentum)));
  keys.push_back(
      row("train", "weight_decay", real_from(0), LONGHAUL_FIELD(scenario.train.weight_decay)));
  keys.push_back(row("train", "clip", real_from(0), LONGHAUL_FIELD(scenario.train.clip)));
  keys.push_back(
      row("train", "steps", whole(1, 100 * kMillion), LONGHAUL_FIELD(scenario.train.steps)));
  keys.push_back(row("train", "seed", whole(0, kUnlimited), LONGHAUL_FIELD(scenario.train.seed)));
  keys.push_back(
      row("train", "step_time", positive_duration(), LONGHAUL_FIELD(scenario.train.step_time)));
  keys.push_back(with_fallback(
      row("train", "stop", one_of<StopAt>({{"steps", StopAt::kSteps}, {"target", StopAt::kTarget}}),
          LONGHAUL_FIELD(scenario.train.stop)),
      "the command's"));
  keys.push_back(row("train", "final_average", one_of<bool>({{"yes", true}, {"no", false}}),
                     LONGHAUL_FIELD(scenario.train.final_average)));
}

void add_eval_and_target(std::vector<ScenarioKey>& keys) {
  keys.push_back(row("eval", "every", whole(1, 10), LONGHAUL_FIELD(scenario.eval.every)));
  keys.push_back(
      row("eval", "samples", whole(1, 100 * kMillion), LONGHAUL_FIELD(scenario.eval.samples)));
  keys.push_back(row("target", "metric",
                     one_of<Metric>({{name_of(Metric::kAccuracy), Metric::kAccuracy},
                                     {name_of(Metric::kLoss), Metric::kLoss}}),
                     LONGHAUL_FIELD(scenario.target.metric)));
  keys.push_back(with_fallback(
      row("target", "value", real_above(0), LONGHAUL_FIELD(scenario.target.value)), "required"));
}

// [link], and the same keys in [[replica]], which go over it.
template <typename Link>
void add_link(std::vector<ScenarioKey>& keys, const char* table, Link link) {
  const auto field = [link](auto member) {
    return [=](Draft & draft) -> auto& { return link(draft).*member; };
  };
  keys.push_back(row(table, "up", bandwidth(), field(&LinkOptions::up)));
  keys.push_back(row(table, "down", bandwidth(), field(&LinkOptions::down)));
  keys.push_back(row(table, "latency", duration(), field(&LinkOptions::latency)));
  keys.push_back(path_row(row(table, "trace", any_text("a file: CSV t_s,mbps or Mahimahi"),
                              field(&LinkOptions::trace))));
  keys.push_back(
      row(table, "markov_spread", real_from(0, 0.99), field(&LinkOptions::markov_spread)));
  keys.push_back(
      row(table, "markov_dwell", duration_from(Seconds(0.001)), field(&LinkOptions::markov_dwell)));
}

void add_replica(std::vector<ScenarioKey>& keys) {
  keys.push_back(row("replica", "count", whole(1, 100'000), LONGHAUL_FIELD(replica_count)));
  const std::size_t first = keys.size();
  add_link(keys, "replica", LONGHAUL_FIELD(replica.link));
  for (std::size_t i = first; i < keys.size(); ++i) keys[i].fallback = "link." + keys[i].name;
  keys.push_back(with_fallback(
      row("replica", "step_time", positive_duration(), LONGHAUL_FIELD(replica.step_time)),
      "train.step_time"));
  keys.push_back(row("replica", "weight", real_from(1e-6, 1e6), LONGHAUL_FIELD(replica.weight)));
}

void add_layer(std::vector<ScenarioKey>& keys) {
  keys.push_back(with_fallback(
      row("layer", "name", any_text("a layer's name"), LONGHAUL_FIELD(layer.name)), "required"));
  keys.push_back(row("layer", "forward", duration(), LONGHAUL_FIELD(layer.forward)));
  keys.push_back(row("layer", "backward", duration(), LONGHAUL_FIELD(layer.backward)));
}

void add_recipe(std::vector<ScenarioKey>& keys) {
  keys.push_back(row("recipe", "keep_ratio", ratio(), LONGHAUL_FIELD(recipe.keep_ratio)));
  keys.push_back(
      row("recipe", "delay_steps", whole(0, kMostDelaySteps), LONGHAUL_FIELD(recipe.delay_steps)));
  keys.push_back(row("recipe", "period_steps", whole(1, kMostPeriodSteps),
                     LONGHAUL_FIELD(recipe.period_steps)));
  keys.push_back(row("recipe", "codec", codec_name(), LONGHAUL_FIELD(recipe.codec)));
  keys.push_back(row("recipe", "merge", one_of(merge_names()), LONGHAUL_FIELD(recipe.merge)));
  keys.push_back(
      with_fallback(row("recipe", "lr", real_above(0), LONGHAUL_FIELD(recipe.lr)), "train.lr"));
  keys.push_back(row("recipe", "outer_lr", real_above(0), LONGHAUL_FIELD(recipe.outer_lr)));
  keys.push_back(row("recipe", "residual_decay", ratio(), LONGHAUL_FIELD(recipe.residual_decay)));
}

}  // namespace

std::vector<ScenarioKey> scenario_keys(const Catalogue& catalogue) {
  std::vector<ScenarioKey> keys;
  keys.push_back(row("", "title", any_text("a line of text"), LONGHAUL_FIELD(scenario.title)));
  keys.push_back(row("", "recipes", text_list(R"(a list of recipes such as ["d-sgd", "dga"])"),
                     LONGHAUL_FIELD(scenario.recipes)));
  add_model_and_data(keys, catalogue);
  add_train(keys);
  add_eval_and_target(keys);
  add_link(keys, "link", LONGHAUL_FIELD(link));
  add_replica(keys);
  add_layer(keys);
  add_recipe(keys);
  return keys;
}

#undef LONGHAUL_FIELD

}  // namespace longhaul
