// It does not matter for a single bit whether a mean comes as payloads or as a vector, nor how many
// threads merge it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/codec/accumulate.h"
#include "tests/codec/test_data.h"
#include "tests/sync/cluster.h"

namespace longhaul {
namespace {

using testing_data::normal_update;
using testing_data::same_bits;

constexpr std::size_t kFormElements = kTileElements + 700;
constexpr std::array kFormCodecs{"dense/fp32",     "dense/bf16",       "dense/4bit",
                                 "sign",           "top_k/bf16",       "top_k/2bit",
                                 "threshold/8bit", "chunk_top_k/2bit", "random_k/bf16",
                                 "cocktail",       "low_rank/fp32",    "shared_low_rank/fp32"};

// The mean of the replica's own payload and one of somebody else, which may be of another codec.
class TwoFormExchange final : public Exchange {
 public:
  TwoFormExchange(const char* codec, bool gives_values) : gives_values_(gives_values) {
    CodecOptions spec = parse_codec(codec).value();
    spec.threshold = 1e-5F;
    others_ = make_codec(spec, {}, workers_);
  }

  void submit(Update update) override {
    std::vector<float> moved = normal_update(update.elements, 900 + update.round.step);
    for (float& m : moved) m *= 1e-2F;
    std::vector<WeightedPayload>& terms = rounds_[update.round];
    if (update.round.step % 4 == 1) {
      returned_[update.round] = std::move(update.payload);
    } else {
      terms.push_back({.payload = std::move(update.payload), .weight = 0.5F});
    }
    ByteBuffer other = others_->take({.residual = moved, .keep_ratio = 0.02});
    terms.push_back(
        {.payload = CheckedPayload::of_sealed(std::move(other), update.elements), .weight = 0.5F});
  }

  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    Mean mean{.round = round,
              .terms = rounds_.extract(round).mapped(),
              .returned = std::exchange(returned_[round], {})};
    if (!gives_values_) return mean;
    auto values = std::make_shared<std::vector<float>>(mean.to_vector());
    return Mean{.round = round, .values = values, .returned = std::move(mean.returned)};
  }

 private:
  bool gives_values_;
  Workers workers_;
  std::unique_ptr<Codec> others_;
  std::map<RoundId, std::vector<WeightedPayload>> rounds_;
  std::map<RoundId, CheckedPayload> returned_;
};

struct FormReplica {
  FormReplica(const EngineOptions& options, const char* others_codec, bool gives_values,
              std::size_t threads)
      : workers(threads),
        exchange(others_codec, gives_values),
        engine(options, parameters, exchange, workers) {}

  void step(std::uint64_t step) {
    std::vector<float> gradient = normal_update(kFormElements, step);
    for (std::size_t i = 0; i < kFormElements; i += 3) gradient[i] = 0;
    engine.submit(gradient);
    ASSERT_TRUE(engine.end_step().ok());
  }

  // Some zeros of either sign.
  static std::vector<float> start() {
    std::vector<float> values = normal_update(kFormElements, 1);
    for (std::size_t i = 0; i < kFormElements; i += 6) values[i] = -0.0F;
    for (std::size_t i = 3; i < kFormElements; i += 12) values[i] = 0.0F;
    return values;
  }

  Workers workers;
  std::vector<float> parameters = start();
  TwoFormExchange exchange;
  Engine engine;
};

EngineOptions form_options(const char* codec, std::mt19937_64& random) {
  const int period = 1 + static_cast<int>(random() % 3);
  EngineOptions options = testing::local_options(
      codec,
      {.keep_ratio = 0.02, .delay_steps = static_cast<int>(random() % 5), .period_steps = period});
  options.recipe.local.fragments = 1 + static_cast<int>(random() % 2);
  options.recipe.residual_decay = random() % 3 == 0 ? 0.9F : 1.0F;
  options.recipe.codec.threshold = 1e-5F;
  options.layers = {{.name = "matrix", .offset = 0, .count = 60000, .shape = {300, 200}},
                    {.name = "rest", .offset = 60000, .count = kFormElements - 60000}};
  return options;
}

class FormOfMean : public ::testing::TestWithParam<const char*> {};

TEST_P(FormOfMean, IsTheSameForSharedAndPosition) {
  std::mt19937_64 random(17);
  for (int trial = 0; trial < 4; ++trial) {
    const EngineOptions options = form_options(GetParam(), random);
    const char* others = trial == 0 ? GetParam() : kFormCodecs[random() % kFormCodecs.size()];
    SCOPED_TRACE(std::string(others) + ", delay " +
                 std::to_string(options.recipe.plan.delay_steps));
    FormReplica values(options, others, true, 1);
    FormReplica terms(options, others, false, 1);
    FormReplica threads(options, others, false, 3);
    for (std::uint64_t step = 0; step < 12; ++step) {
      for (FormReplica* replica : {&values, &terms, &threads}) replica->step(step);
      for (FormReplica* replica : {&terms, &threads}) {
        ASSERT_TRUE(same_bits(replica->engine.shared(), values.engine.shared())) << step;
        ASSERT_TRUE(same_bits(replica->parameters, values.parameters)) << step;
      }
    }
    EXPECT_FALSE(same_bits(values.engine.shared(), FormReplica::start()));
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, FormOfMean, ::testing::ValuesIn(kFormCodecs),
                         [](const auto& test) {
                           std::string name(test.param);
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace longhaul
