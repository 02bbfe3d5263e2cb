// A replica whose model is not Longhaul's: it fits a line to points of its own, over a hub.
//
//   longhaul hub smoke --set replica.count=1 --recipe d-sgd     in one terminal
//   join_hub 127.0.0.1:7070 one                                 in as many others as there are
//   replicas
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "longhaul/base/state.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/job/task.h"
#include "longhaul/session/hub_access.h"
#include "longhaul/session/train_session.h"

namespace {

using longhaul::Result;
using longhaul::State;
using longhaul::Status;

// y = 3x - 2, with noise. The parameters are slope and offset.
class Line final : public longhaul::Learner {
 public:
  explicit Line(std::uint64_t seed) : random_(seed) {}
  std::span<float> parameters() override { return parameters_; }
  std::span<float> gradient() override { return gradient_; }
  double compute_gradient() override {
    const float x = std::uniform_real_distribution<float>(-1, 1)(random_);
    const float noise = std::normal_distribution<float>(0, 0.01F)(random_);
    const float error = parameters_[0] * x + parameters_[1] - (3 * x - 2 + noise);
    gradient_ = {error * x, error};
    return 0.5 * error * error;
  }
  void save(State& /*state*/) const override {}  // its points are drawn anew after a resume
  Status load(const State& /*state*/) override { return longhaul::Done{}; }

 private:
  std::mt19937_64 random_;
  std::vector<float> parameters_{0, 0};
  std::vector<float> gradient_{0, 0};
};

class Lines final : public longhaul::Workload {
 public:
  const longhaul::LayerTable& layers() const override { return layers_; }
  std::span<const float> initial_parameters() const override { return initial_; }
  std::unique_ptr<longhaul::Learner> make_learner(std::size_t index) override {
    return std::make_unique<Line>(index);
  }
  longhaul::Evaluation evaluate(std::span<const float> line, std::size_t /*samples*/) override {
    const double off = (line[0] - 3) * (line[0] - 3) + (line[1] + 2) * (line[1] + 2);
    return {.loss = off, .accuracy = 1 / (1 + off), .samples = 1};
  }

 private:
  longhaul::LayerTable layers_{{.name = "line", .count = 2}};
  std::vector<float> initial_{0, 0};
};

class Silent final : public longhaul::SessionObserver {
 public:
  void on_start(std::size_t /*slot*/, std::uint64_t /*step*/) override {}
  void on_step(const longhaul::StepFacts& /*facts*/, const longhaul::Engine& /*engine*/) override {}
  void on_replaced(const longhaul::Replaced& /*replaced*/) override {}
  void on_score(const longhaul::Score& /*score*/) override {}
  void on_link(const longhaul::LinkNews& /*news*/) override {}
  void on_checkpoint(const Result<std::uint64_t>& /*step*/) override {}
};

Status train(const std::string& hub, const std::string& name) {
  const longhaul::HubAccess access = LONGHAUL_TRY(longhaul::hub_access({}, hub, name));
  const auto connector = longhaul::make_grpc_connector(access.address, access.tls);
  const auto task = LONGHAUL_TRY(longhaul::ask_for_task(
      *connector, name, access.token, longhaul::deadline_after(longhaul::Seconds(30))));
  Lines lines;
  const std::span bytes = std::as_bytes(lines.initial_parameters());
  longhaul::SessionOptions options{
      .client = {.name = name,
                 .elements = 2,
                 .layers = lines.layers(),
                 .initial =
                     std::make_shared<const longhaul::ByteBuffer>(bytes.begin(), bytes.end())},
      .job = LONGHAUL_TRY(longhaul::job_of(task, {}))};
  const longhaul::Clock clock;
  Silent observer;
  longhaul::TrainSession session(std::move(options), lines, *connector, clock, observer);
  LONGHAUL_TRY(session.run());
  const std::span<const float> line = session.engine().shared();
  std::printf("y = %.2f x %+.2f\n", static_cast<double>(line[0]), static_cast<double>(line[1]));
  session.leave();
  return longhaul::Done{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: join_hub HOST:PORT NAME\n");
    return 2;
  }
  const Status done = train(argv[1], argv[2]);
  if (!done.ok()) std::fprintf(stderr, "join_hub: %s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
