#include "trainer/workload.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/base/workers.h"
#include "trainer/arena.h"
#include "trainer/batch_sampler.h"
#include "trainer/examples.h"
#include "trainer/models.h"
#include "trainer/threads.h"

namespace longhaul::trainer {
namespace {

constexpr std::uint64_t kTestOrderSeed = 0;
constexpr std::uint64_t kMostBatches = std::uint64_t{1} << 32U;  // far beyond every run

// A copy of the model on an arena of its own, at its initial parameters.
struct Copy {
  std::shared_ptr<Model> model;
  Arena arena;

  Copy(const ChosenModel& chosen, const ModelInput& input, std::uint64_t seed)
      : model(make(chosen, input, seed)), arena(model->parameters()) {}

 private:
  static std::shared_ptr<Model> make(const ChosenModel& chosen, const ModelInput& input,
                                     std::uint64_t seed) {
    Random random(seed, Draws::kInitialParameters);
    return chosen.entry->make(input, chosen.options, random);
  }
};

// One row of scores and one answer per decision: per image, or per position of a text.
struct Scores {
  torch::Tensor logits;
  torch::Tensor answers;
};

Scores score(Model& model, const Batch& batch) {
  const torch::Tensor logits = model.forward(batch.input);
  return {logits.reshape({-1, logits.size(-1)}), batch.answers.reshape({-1})};
}

torch::Tensor mean_loss(const Scores& scores) {
  return torch::nll_loss(torch::log_softmax(scores.logits, 1), scores.answers);
}

class TorchLearner final : public Learner {
 public:
  TorchLearner(Copy copy, std::shared_ptr<const Examples> data, std::vector<BatchSampler> samplers,
               std::size_t threads)
      : copy_(std::move(copy)),
        data_(std::move(data)),
        samplers_(std::move(samplers)),
        threads_(threads) {}

  std::span<float> parameters() override { return copy_.arena.parameters(); }
  std::span<float> gradient() override { return copy_.arena.gradient(); }

  double compute_gradient() override { return compute({}); }
  double compute_gradient_by_layers(const GradientReady& ready) override { return compute(ready); }

  void save(longhaul::State& state) const override {
    state.values["learner.batches"] = batches_;
    const torch::Tensor drawn = copy_.model->generator().get_state();
    const auto bytes = std::as_bytes(std::span(drawn.data_ptr<std::uint8_t>(), drawn.nbytes()));
    state.blobs["learner.generator"].assign(bytes.begin(), bytes.end());
  }

  Status load(const longhaul::State& state) override {
    const auto batches = LONGHAUL_TRY(state.value<std::uint64_t>("learner.batches"));
    const ByteView drawn = LONGHAUL_TRY(state.blob("learner.generator"));
    at::Generator generator = copy_.model->generator();
    torch::Tensor bytes = generator.get_state();
    if (drawn.size() != bytes.nbytes() || batches < batches_ || batches > kMostBatches)
      return Error{ErrorCode::kMismatch, "learner: not a place in this data"};
    std::ranges::copy(drawn, static_cast<std::byte*>(bytes.data_ptr()));
    generator.set_state(bytes);
    for (BatchSampler& sampler : samplers_) sampler.skip(batches - batches_);
    batches_ = batches;
    return Done{};
  }

 private:
  double compute(const GradientReady& ready) {
    use_threads(threads_);
    samples_.clear();
    for (BatchSampler& sampler : samplers_) {
      const auto next = sampler.next();
      samples_.insert(samples_.end(), next.begin(), next.end());
    }
    copy_.arena.clear_gradient();
    const torch::Tensor loss = mean_loss(score(*copy_.model, data_->batch(samples_)));
    if (ready) {
      copy_.arena.tell_while([&] { loss.backward(); }, ready);
    } else {
      loss.backward();
    }
    copy_.arena.check_views();
    ++batches_;
    return loss.item<double>();
  }

  Copy copy_;
  std::shared_ptr<const Examples> data_;
  std::vector<BatchSampler> samplers_;  // one; the joint learner has one per replica
  std::size_t threads_;                 // of one gradient
  std::vector<std::uint32_t> samples_;
  std::uint64_t batches_ = 0;  // drawn
};

struct BatchResult {
  double loss = 0;  // sums over decisions
  double correct = 0;
  double decisions = 0;
};

BatchResult evaluate_batch(Model& model, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  const Scores scores = score(model, batch);
  const auto decisions = static_cast<double>(scores.answers.numel());
  const torch::Tensor correct = scores.logits.argmax(1).eq(scores.answers).sum();
  return {.loss = mean_loss(scores).item<double>() * decisions,
          .correct = correct.item<double>(),
          .decisions = decisions};
}

std::vector<std::uint32_t> test_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  Random random(kTestOrderSeed, Draws::kTestOrder);
  shuffle(std::span(order), random);
  return order;
}

Status check_fit(const ChosenModel& chosen, const ModelInput& input, const DataConfig& data) {
  const std::string name(chosen.entry->name);
  if (chosen.entry->input != input.kind) {
    const bool needs_text = chosen.entry->input == InputKind::kText;
    return Error{
        ErrorCode::kInvalidArgument,
        "model " + name + " needs " + (needs_text ? "text" : "images") + ", not data " + data.kind};
  }
  if (name == "cnn" && std::min(input.height, input.width) < 16) {
    return Error{ErrorCode::kInvalidArgument, "model cnn needs images of at least 16 × 16 pixels"};
  }
  return Done{};
}

}  // namespace

struct TorchWorkload::State {
  WorkloadOptions config;
  ChosenModel chosen;
  LoadedData data;
  std::vector<std::vector<std::uint32_t>> shares;
  std::vector<std::uint32_t> order;  // of test samples
  LayerTable layers;
  std::vector<float> initial;
  std::vector<Copy> evaluators;  // one per thread of workers
  Workers workers;

  State(WorkloadOptions wanted, ChosenModel model, LoadedData loaded,
        std::vector<std::vector<std::uint32_t>> split_shares)
      : config(std::move(wanted)),
        chosen(std::move(model)),
        data(std::move(loaded)),
        shares(std::move(split_shares)),
        order(test_order(data.test->count())),
        workers(config.threads) {
    use_threads(config.gradient_threads);
    for (std::size_t i = 0; i < config.threads; ++i) evaluators.push_back(copy());
    layers = evaluators[0].arena.layers();
    const auto parameters = evaluators[0].arena.parameters();
    initial.assign(parameters.begin(), parameters.end());
  }

  [[nodiscard]] Copy copy() const { return {chosen, data.input, config.seed}; }

  [[nodiscard]] BatchSampler sampler(std::size_t replica) const {
    return {shares[replica], config.batch, Random(config.seed, Draws::kBatches, replica)};
  }

  [[nodiscard]] std::unique_ptr<Learner> learner(std::vector<BatchSampler> samplers,
                                                 std::uint64_t generator) const {
    Copy own = copy();
    const std::uint64_t seed = Random(config.seed, Draws::kDropout, generator).bits();
    own.model->set_generator(at::make_generator<at::CPUGeneratorImpl>(seed));
    return std::make_unique<TorchLearner>(std::move(own), data.train, std::move(samplers),
                                          config.gradient_threads);
  }

  // Batches are dealt to evaluators by turns, and which evaluator scores a batch changes nothing:
  // they are equal.
  std::vector<BatchResult> evaluate(std::size_t samples) {
    const std::size_t batches = (samples + data.test_batch - 1) / data.test_batch;
    std::vector<BatchResult> results(batches);
    workers.run(evaluators.size(), [&](std::size_t turn) {
      use_calling_thread();
      for (std::size_t i = turn; i < batches; i += evaluators.size()) {
        const std::size_t begin = i * data.test_batch;
        const std::size_t size = std::min(data.test_batch, samples - begin);
        const Batch batch = data.test->batch(std::span(order).subspan(begin, size));
        results[i] = evaluate_batch(*evaluators[turn].model, batch);
      }
    });
    return results;
  }
};

TorchWorkload::TorchWorkload(std::unique_ptr<State> state) : state_(std::move(state)) {}
TorchWorkload::~TorchWorkload() = default;

Result<std::unique_ptr<TorchWorkload>> TorchWorkload::make(const WorkloadOptions& config) {
  if (config.batch == 0 || config.threads == 0 || config.gradient_threads == 0) {
    return Error{ErrorCode::kInvalidArgument, "batch and threads are at least 1"};
  }
  auto chosen = LONGHAUL_TRY(choose_model(config.model));
  const auto context = chosen.options.find("context");
  const double window = context == chosen.options.end() ? 1 : context->second;
  auto data = LONGHAUL_TRY(load_data(config.data, static_cast<std::size_t>(window)));
  LONGHAUL_TRY(check_fit(chosen, data.input, config.data));
  auto shares =
      LONGHAUL_TRY(split(data.train->labels(), config.replicas, config.split, config.seed));
  auto state =
      std::make_unique<State>(config, std::move(chosen), std::move(data), std::move(shares));
  return std::unique_ptr<TorchWorkload>(new TorchWorkload(std::move(state)));
}

const LayerTable& TorchWorkload::layers() const { return state_->layers; }
std::span<const float> TorchWorkload::initial_parameters() const { return state_->initial; }
std::size_t TorchWorkload::test_samples() const { return state_->order.size(); }
std::size_t TorchWorkload::share_size(std::size_t index) const {
  return state_->shares.at(index).size();
}

std::unique_ptr<Learner> TorchWorkload::make_learner(std::size_t index) {
  LONGHAUL_CHECK_LT(index, state_->shares.size());
  return state_->learner({state_->sampler(index)}, index);
}

std::unique_ptr<Learner> TorchWorkload::make_joint_learner() {
  std::vector<BatchSampler> samplers;
  for (std::size_t i = 0; i < state_->shares.size(); ++i) samplers.push_back(state_->sampler(i));
  return state_->learner(std::move(samplers), state_->shares.size());
}

Evaluation TorchWorkload::evaluate(std::span<const float> parameters, std::size_t samples) {
  samples = std::min(samples, test_samples());
  LONGHAUL_CHECK_GT(samples, 0U);
  LONGHAUL_CHECK_EQ(parameters.size(), state_->initial.size());
  for (Copy& copy : state_->evaluators)
    std::ranges::copy(parameters, copy.arena.parameters().begin());
  BatchResult total;
  for (const BatchResult& batch : state_->evaluate(samples)) {
    total.loss += batch.loss;
    total.correct += batch.correct;
    total.decisions += batch.decisions;
  }
  return {.loss = total.loss / total.decisions,
          .accuracy = total.correct / total.decisions,
          .samples = samples};
}

Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& config) {
  auto made = LONGHAUL_TRY(TorchWorkload::make(config));
  return std::unique_ptr<Workload>(std::move(made));
}

}  // namespace longhaul::trainer
