// How fast a hub and its replicas move rounds, over gRPC on loopback and in real time.
//
//   build/release/bin/hub_bench [--replicas 4] [--bytes 32MB] [--rounds 12] [--tls] [--dir DIR]
//                               [--link 200mbit --latency 100ms] [--delay 4] [--rate 50mbit]
//
// All of them are threads of this process; replicas have the real client and engine, and gradients
// that cost nothing. With --link every replica gets a relay. Prints one JSON object: the time of
// rounds, and payload bytes up plus down per second. On a link also the share of its rate that the
// payloads use: `of_link` in a transfer, from its first byte to its last at the receiver, and
// `of_link_overall` from start to end, where --delay keeps both directions busy.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "longhaul/access/authority.h"
#include "longhaul/access/invite.h"
#include "longhaul/base/memory.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/hub.h"
#include "longhaul/link/relay.h"
#include "longhaul/sync/replica.h"

namespace longhaul {
namespace {

constexpr std::size_t kWarmUp = 2;  // rounds that are not measured
constexpr Seconds kLimit{300};

struct Arguments {
  std::size_t replicas = 4;
  std::string bytes = "32MB";
  std::size_t rounds = 12;
  std::string recipe = "d-sgd";
  int delay_steps = 0;
  std::size_t lanes = 0;  // 0: as many as the path needs
  std::string rate;
  std::string link;
  std::string latency = "0ms";
  std::string directory;
  bool tls = false;
};

template <typename T>
T value_or_exit(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::cerr << "hub_bench: " << result.error().message << '\n';
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): before any thread, or at the end of all use
}

// The same gradient in every step.
class IdleLearner final : public Learner {
 public:
  explicit IdleLearner(std::size_t elements, std::size_t slot)
      : parameters_(elements), gradient_(elements) {
    std::mt19937 random(static_cast<unsigned>(slot));
    for (float& g : gradient_) g = static_cast<float>(random()) * 1e-12F;
  }
  [[nodiscard]] std::span<float> parameters() override { return parameters_; }
  double compute_gradient() override { return 1.0; }
  [[nodiscard]] std::span<float> gradient() override { return gradient_; }

  void save(State& /*state*/) const override {}
  Status load(const State& /*state*/) override { return Done{}; }

 private:
  std::vector<float> parameters_;
  std::vector<float> gradient_;
};

// Keys of a hub and an invite for each replica, in a directory that goes with it.
class Keys {
 public:
  Keys() : directory_(std::filesystem::temp_directory_path() / "longhaul_hub_bench_keys") {
    std::filesystem::remove_all(directory_);
    (void)value_or_exit(access::create_authority(directory_, {}, access::wall_now()));
  }
  ~Keys() { std::filesystem::remove_all(directory_); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  [[nodiscard]] TlsKeys of_hub() const {
    return value_or_exit(access::load_hub_keys(directory_, access::wall_now()));
  }
  [[nodiscard]] TlsKeys of_replica(const std::string& name) const {
    const std::filesystem::path file = directory_ / (name + ".invite");
    (void)value_or_exit(access::invite(
        directory_, {.name = name, .address = "127.0.0.1:1", .file = file}, access::wall_now()));
    return value_or_exit(access::read_invite(file, access::wall_now())).keys;
  }

 private:
  std::filesystem::path directory_;
};

EngineOptions engine_options(const Arguments& arguments) {
  EngineOptions options{.recipe = value_or_exit(find_recipe(arguments.recipe)),
                        .lr = {.peak = 1e-3, .steps = arguments.rounds}};
  options.recipe.plan.delay_steps = arguments.delay_steps;
  return options;
}

std::optional<Bandwidth> rate_of(const Arguments& arguments) {
  if (arguments.rate.empty()) return std::nullopt;
  return value_or_exit(parse_bandwidth(arguments.rate));
}

class BenchReplica {
 public:
  BenchReplica(const Arguments& arguments, std::size_t elements, std::size_t slot, int port,
               const std::optional<TlsKeys>& tls)
      : learner_(elements, slot),
        connector_(make_grpc_connector("127.0.0.1:" + std::to_string(port), tls)),
        client_(client_options(arguments, slot), *connector_, clock_),
        replica_({.engine = engine_options(arguments), .workers = workers_, .clock = clock_},
                 learner_, client_, client_),
        thread_([this] { run(); }) {}

  void wait() { thread_.join(); }
  [[nodiscard]] std::size_t reconnections() const { return reconnections_; }  // after wait()

 private:
  ClientOptions client_options(const Arguments& arguments, std::size_t slot) {
    const std::span bytes = std::as_bytes(learner_.parameters());
    return {.name = "replica-" + std::to_string(slot),
            .slot = static_cast<std::uint32_t>(slot),
            .elements = learner_.parameters().size(),
            .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end()),
            .lanes = std::max<std::size_t>(arguments.lanes, 1),
            .most_lanes = arguments.lanes == 0 ? kMostAutomaticLanes : arguments.lanes,
            .rate = rate_of(arguments),
            .compute = Seconds(0.001)};
  }

  void run() {
    const Deadline limit = deadline_after(kLimit);
    Status status = replica_.start(limit);
    while (status.ok()) {
      Result<StepFacts> facts = replica_.step(limit);
      if (!facts.ok()) {
        status = facts.error();
      } else if (facts->stance == Stance::kFinish) {
        break;
      }
    }
    reconnections_ = client_.reconnections();
    if (status.ok()) {
      if (const Result<StepFacts> done = replica_.finish(limit); !done.ok()) status = done.error();
    }
    client_.leave();
    if (!status.ok()) std::cerr << "hub_bench: " << status.error().message << '\n';
  }

  Clock clock_;
  Workers workers_{1};
  IdleLearner learner_;
  std::unique_ptr<Connector> connector_;
  HubClient client_;
  Replica replica_;
  std::size_t reconnections_ = 0;
  std::jthread thread_;  // last: ends before what it uses
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// When rounds closed. The hub's thread writes, and nobody reads before that has ended.
struct RoundTimes {
  std::vector<TimePoint> times;
  double cpu_before = 0;
  double cpu_after = 0;

  void operator()(const RoundNews& news) {
    if (news.outcome.round.contributors.empty()) return;
    times.push_back(news.time);
    if (times.size() == kWarmUp) cpu_before = cpu_seconds();
    cpu_after = cpu_seconds();
  }
};

nlohmann::ordered_json report(const Arguments& arguments, std::size_t bytes, const RoundTimes& seen,
                              const HubStatus& status) {
  std::vector<double> rounds;
  for (std::size_t i = kWarmUp; i < seen.times.size(); ++i)
    rounds.push_back(Seconds(seen.times[i] - seen.times[i - 1]).count());
  const double all = Seconds(seen.times.back() - seen.times[kWarmUp - 1]).count();
  const double each_way = static_cast<double>(rounds.size() * bytes);
  nlohmann::ordered_json out{
      {"replicas", arguments.replicas},
      {"update_bytes", bytes},
      {"lanes", arguments.lanes == 0 ? "auto" : std::to_string(arguments.lanes)},
      {"tls", arguments.tls},
      {"journal", !arguments.directory.empty()},
      {"rounds", rounds.size()},
      {"round_p50_s", quantile(rounds, 0.5)},
      {"round_p99_s", quantile(rounds, 0.99)},
      {"cpu_s_per_round", (seen.cpu_after - seen.cpu_before) / static_cast<double>(rounds.size())},
      {"mb_per_s", 2e-6 * static_cast<double>(arguments.replicas) * each_way / all}};
  if (arguments.link.empty()) return out;
  const double rate = value_or_exit(parse_bandwidth(arguments.link)).bytes_per_second;
  out["link"] = arguments.link;
  out["latency"] = arguments.latency;
  out["of_link_overall"] = each_way / all / rate;
  for (const auto& [name, replica] : status.replicas) {
    const Measured& measured = replica.measured;
    const auto share = [&](const RateEstimator& estimator) -> nlohmann::ordered_json {
      if (!estimator.typical()) return nullptr;  // with one replica nothing comes down
      return estimator.typical()->bytes_per_second / rate;
    };
    out["of_link"].push_back({{"up", share(measured.up)}, {"down", share(measured.down)}});
  }
  return out;
}

int run(const Arguments& arguments) {
  keep_freed_memory();
  const std::size_t elements = value_or_exit(parse_bytes(arguments.bytes)) / sizeof(float);
  const Clock clock;
  const std::unique_ptr<Keys> keys = arguments.tls ? std::make_unique<Keys>() : nullptr;
  RoundTimes seen;
  HubStatus status;
  std::size_t reconnections = 0;
  {
    std::unique_ptr<Hub> hub =
        value_or_exit(Hub::start({.training = {.engine = engine_options(arguments),
                                               .steps = arguments.rounds,
                                               .replicas = arguments.replicas,
                                               .directory = arguments.directory},
                                  .start_with = arguments.replicas,
                                  .rate = rate_of(arguments),
                                  .threads = std::max(1U, std::thread::hardware_concurrency()),
                                  .watcher = std::ref(seen)},
                                 clock, Log()));
    const auto server = value_or_exit(GrpcServer::start(
        hub->acceptor(), "127.0.0.1:0", keys ? std::optional(keys->of_hub()) : std::nullopt));
    std::vector<std::unique_ptr<Relay>> relays;
    std::vector<std::unique_ptr<BenchReplica>> replicas;
    for (std::size_t slot = 0; slot < arguments.replicas; ++slot) {
      int port = server->port();
      if (!arguments.link.empty()) {
        const RateTrace rate = RateTrace::constant(value_or_exit(parse_bandwidth(arguments.link)));
        relays.push_back(value_or_exit(
            Relay::start(static_cast<std::uint16_t>(port),
                         {.up = rate,
                          .down = rate,
                          .latency = value_or_exit(parse_duration(arguments.latency))})));
        port = relays.back()->port();
      }
      const std::string name = "replica-" + std::to_string(slot);
      replicas.push_back(std::make_unique<BenchReplica>(
          arguments, elements, slot, port,
          keys ? std::optional(keys->of_replica(name)) : std::nullopt));
    }
    for (const auto& replica : replicas) {
      replica->wait();
      reconnections += replica->reconnections();
    }
    status = hub->status();
  }
  if (seen.times.size() != arguments.rounds) {
    std::cerr << "hub_bench: " << seen.times.size() << " rounds closed, expected "
              << arguments.rounds << '\n';
    return 1;
  }
  nlohmann::ordered_json out = report(arguments, elements * sizeof(float), seen, status);
  out["reconnections"] = reconnections;
  std::cout << out.dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  longhaul::Arguments arguments;
  CLI::App program("How fast a hub and its replicas move rounds");
  program.add_option("--replicas", arguments.replicas)->check(CLI::Range(1, 1000));
  program.add_option("--bytes", arguments.bytes, "of a dense update");
  program.add_option("--rounds", arguments.rounds)->check(CLI::Range(4, 100000));
  program.add_option("--recipe", arguments.recipe);
  program.add_option("--delay", arguments.delay_steps, "steps");
  program.add_option("--lanes", arguments.lanes, "default: as many as the path needs")
      ->check(CLI::Range(1, 64));
  program.add_option("--rate", arguments.rate, "that each end sends at most");
  program.add_option("--link", arguments.link, "rate of each direction: through a relay");
  program.add_option("--latency", arguments.latency, "one way, with --link");
  program.add_option("--dir", arguments.directory, "of the journal; must not hold one");
  program.add_flag("--tls", arguments.tls);
  CLI11_PARSE(program, argc, argv);
  return longhaul::run(arguments);
}
