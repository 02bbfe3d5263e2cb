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
#include "trainer/examples.h"
#include "trainer/model.h"
#include "trainer/threads.h"

namespace longhaul::trainer {
namespace {

constexpr std::uint64_t kTestOrderSeed = 0;
constexpr std::uint64_t kMostBatches = std::uint64_t{1} << 32U;  // far beyond every run

// One row of scores per decision: per image, or per position of a text.
torch::Tensor scores_of(Model& model, const Batch& batch) {
  const torch::Tensor logits = model.forward(batch.data);
  return logits.reshape({-1, logits.size(-1)});
}

torch::Tensor mean_loss(const torch::Tensor& scores, const Batch& batch) {
  return torch::nll_loss(torch::log_softmax(scores, 1), batch.target.reshape({-1}));
}

class TorchLearner final : public Learner {
 public:
  TorchLearner(std::shared_ptr<Model> model, std::shared_ptr<const Examples> data,
               std::vector<BatchSampler> samplers, std::size_t threads)
      : model_(std::move(model)),
        data_(std::move(data)),
        samplers_(std::move(samplers)),
        fresh_samplers_(samplers_),
        threads_(threads) {}

  std::span<float> parameters() override { return model_->arena().parameters(); }
  std::span<float> gradient() override { return model_->arena().gradient(); }

  double compute_gradient() override { return compute({}); }
  double compute_gradient_by_layers(const LayerWatch& watch) override { return compute(watch); }

  void save(longhaul::State& state) const override {
    state.values["learner.batches"] = batches_;
    const torch::Tensor drawn = model_->generator().get_state();
    const auto bytes = std::as_bytes(std::span(drawn.data_ptr<std::uint8_t>(), drawn.nbytes()));
    state.blobs["learner.generator"].assign(bytes.begin(), bytes.end());
  }

  Status load(const longhaul::State& state) override {
    const auto batches = LONGHAUL_TRY(state.value<std::uint64_t>("learner.batches"));
    const ByteView drawn = LONGHAUL_TRY(state.blob("learner.generator"));
    at::Generator generator = model_->generator();
    torch::Tensor bytes = generator.get_state();
    if (drawn.size() != bytes.nbytes() || batches > kMostBatches)
      return Error{ErrorCode::kMismatch, "learner: not a place in this data"};
    std::ranges::copy(drawn, static_cast<std::byte*>(bytes.data_ptr()));
    generator.set_state(bytes);
    if (batches < batches_) {
      samplers_ = fresh_samplers_;
      batches_ = 0;
    }
    for (BatchSampler& sampler : samplers_) sampler.skip(batches - batches_);
    batches_ = batches;
    return Done{};
  }

 private:
  double compute(const LayerWatch& watch) {
    use_threads(threads_);
    samples_.clear();
    for (BatchSampler& sampler : samplers_) {
      const auto next = sampler.next();
      samples_.insert(samples_.end(), next.begin(), next.end());
    }
    model_->arena().clear_gradient();
    const Batch batch = data_->batch(samples_);
    torch::Tensor loss;
    model_->arena().tell_before_use([&] { loss = mean_loss(scores_of(*model_, batch), batch); },
                                    watch.before_use);
    if (watch.forward_done) watch.forward_done();
    model_->arena().tell_when_ready([&] { loss.backward(); }, watch.ready);
    model_->arena().check_views();
    ++batches_;
    return loss.item<double>();
  }

  std::shared_ptr<Model> model_;
  std::shared_ptr<const Examples> data_;
  std::vector<BatchSampler> samplers_;  // one; the joint learner has one per replica
  const std::vector<BatchSampler> fresh_samplers_;
  std::size_t threads_;  // of one gradient
  std::vector<std::uint32_t> samples_;
  std::uint64_t batches_ = 0;  // drawn
};

// Sums over the decisions of a batch.
Evaluation evaluate_batch(Model& model, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor scores = scores_of(model, batch);
  const torch::Tensor answers = batch.target.reshape({-1});
  const auto decisions = static_cast<std::size_t>(answers.numel());
  const torch::Tensor correct = scores.argmax(1).eq(answers).sum();
  return {.loss = mean_loss(scores, batch).item<double>() * static_cast<double>(decisions),
          .accuracy = correct.item<double>(),
          .samples = decisions};
}

std::vector<std::uint32_t> test_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  Random random(kTestOrderSeed, Draws::kTestOrder);
  shuffle(std::span(order), random);
  return order;
}

Status check_fit(const ModelEntry& entry, const InputShape& input, const DataOptions& data) {
  const std::string name(entry.name);
  if (entry.reads_text != input.is_text()) {
    return Error{ErrorCode::kInvalidArgument, "model " + name + " needs " +
                                                  (entry.reads_text ? "text" : "images") +
                                                  ", not data " + data.kind};
  }
  if (name == "cnn" && std::min(input.height, input.width) < 16) {
    return Error{ErrorCode::kInvalidArgument, "model cnn needs images of at least 16 × 16 pixels"};
  }
  return Done{};
}

}  // namespace

WorkloadOptions workload_options(const Scenario& scenario, std::uint64_t seed) {
  WorkloadOptions options{.model = scenario.model.name,
                          .data = scenario.data,
                          .replicas = scenario.replicas.size(),
                          .batch = scenario.train.batch,
                          .seed = seed,
                          .threads = 1};
  // Sizes that the scenario leaves at 0 are the model's own.
  const auto put = [&](const char* name, std::size_t value) {
    if (value > 0) options.knobs[name] = static_cast<double>(value);
  };
  put(scenario.model.name == "resnet" ? "blocks" : "layers", scenario.model.layers);
  put("width", scenario.model.width);
  put("heads", scenario.model.heads);
  put("context", scenario.model.context);
  return options;
}

TorchWorkload::TorchWorkload(WorkloadOptions options, const ModelEntry& entry, ModelKnobs knobs,
                             LoadedData data, Shares shares)
    : options_(std::move(options)),
      entry_(entry),
      knobs_(std::move(knobs)),
      data_(std::move(data)),
      shares_(std::move(shares)),
      order_(test_order(data_.test->count())),
      workers_(options_.threads) {
  use_threads(options_.gradient_threads);
  for (std::size_t i = 0; i < options_.threads; ++i) evaluators_.push_back(copy());
  Arena& arena = evaluators_[0]->arena();
  layers_ = arena.layers();
  initial_.assign(arena.parameters().begin(), arena.parameters().end());
}

Result<std::unique_ptr<TorchWorkload>> TorchWorkload::make(const WorkloadOptions& options) {
  if (options.batch == 0 || options.threads == 0 || options.gradient_threads == 0) {
    return Error{ErrorCode::kInvalidArgument, "batch and threads are at least 1"};
  }
  const ModelEntry* const entry = LONGHAUL_TRY(find_model(options.model));
  ModelKnobs knobs = LONGHAUL_TRY(complete_knobs(*entry, options.knobs));
  const auto context = knobs.find("context");
  const double window = context == knobs.end() ? 1 : context->second;
  LoadedData data = LONGHAUL_TRY(load_data(options.data, static_cast<std::size_t>(window)));
  LONGHAUL_TRY(check_fit(*entry, data.input, options.data));
  Shares shares =
      LONGHAUL_TRY(split(data.train->labels, options.replicas, options.data, options.seed));
  return std::unique_ptr<TorchWorkload>(
      new TorchWorkload(options, *entry, std::move(knobs), std::move(data), std::move(shares)));
}

std::shared_ptr<Model> TorchWorkload::copy() const {
  Random random(options_.seed, Draws::kInitialParameters);
  std::shared_ptr<Model> model = entry_.make(data_.input, knobs_, random);
  (void)model->arena();
  return model;
}

BatchSampler TorchWorkload::sampler(std::size_t replica) const {
  return {shares_[replica], options_.batch, Random(options_.seed, Draws::kBatches, replica)};
}

std::unique_ptr<Learner> TorchWorkload::learner(std::vector<BatchSampler> samplers,
                                                std::uint64_t generator) const {
  std::shared_ptr<Model> own = copy();
  const std::uint64_t seed = Random(options_.seed, Draws::kDropout, generator).bits();
  own->set_generator(at::make_generator<at::CPUGeneratorImpl>(seed));
  return std::make_unique<TorchLearner>(std::move(own), data_.train, std::move(samplers),
                                        options_.gradient_threads);
}

std::unique_ptr<Learner> TorchWorkload::make_learner(std::size_t index) {
  LONGHAUL_CHECK_LT(index, shares_.size());
  return learner({sampler(index)}, index);
}

std::unique_ptr<Learner> TorchWorkload::make_joint_learner() {
  std::vector<BatchSampler> samplers;
  for (std::size_t i = 0; i < shares_.size(); ++i) samplers.push_back(sampler(i));
  return learner(std::move(samplers), shares_.size());
}

// Batches are dealt to evaluators by turns, and which evaluator scores a batch changes nothing:
// they are equal.
std::vector<Evaluation> TorchWorkload::evaluate_batches(std::size_t samples) {
  const std::size_t batches = (samples + data_.test_batch - 1) / data_.test_batch;
  std::vector<Evaluation> results(batches);
  workers_.run(evaluators_.size(), [&](std::size_t turn) {
    use_calling_thread();
    for (std::size_t i = turn; i < batches; i += evaluators_.size()) {
      const std::size_t begin = i * data_.test_batch;
      const std::size_t size = std::min(data_.test_batch, samples - begin);
      const Batch batch = data_.test->batch(std::span(order_).subspan(begin, size));
      results[i] = evaluate_batch(*evaluators_[turn], batch);
    }
  });
  return results;
}

Evaluation TorchWorkload::evaluate(std::span<const float> parameters, std::size_t samples) {
  samples = std::min(samples, test_samples());
  LONGHAUL_CHECK_GT(samples, 0U);
  LONGHAUL_CHECK_EQ(parameters.size(), initial_.size());
  for (const std::shared_ptr<Model>& model : evaluators_)
    std::ranges::copy(parameters, model->arena().parameters().begin());
  Evaluation total;
  for (const Evaluation& batch : evaluate_batches(samples)) {
    total.loss += batch.loss;
    total.accuracy += batch.accuracy;
    total.samples += batch.samples;
  }
  const auto decisions = static_cast<double>(total.samples);
  return {
      .loss = total.loss / decisions, .accuracy = total.accuracy / decisions, .samples = samples};
}

Result<std::unique_ptr<Workload>> make_workload(const WorkloadOptions& options) {
  auto made = LONGHAUL_TRY(TorchWorkload::make(options));
  return std::unique_ptr<Workload>(std::move(made));
}

}  // namespace longhaul::trainer
