// Replicas without torch: a model of any size, gradients that cost next to nothing, everything else
// as in `longhaul train`. For tests with faults and for measurements of the hub.
//
//   longhaul_light_replica --hub HOST:PORT --name NAME [--replicas N] [--elements N] …
//
// Several replicas run as threads of one process, under the names NAME-0, NAME-1, …
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/light_learner.h"
#include "longhaul/base/memory.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/exchange/hub_client.h"
#include "longhaul/job/task.h"
#include "longhaul/session/book.h"
#include "longhaul/session/exit_code.h"
#include "longhaul/session/hub_access.h"
#include "longhaul/session/interrupt.h"
#include "longhaul/sync/replica.h"
#include "longhaul/telemetry/event_log.h"
#include "trainer/catalogue.h"

namespace longhaul::bench {
namespace {

constexpr Seconds kPatience{0.2};  // of one wait, between looks at Ctrl-C
constexpr Seconds kAskTimeout{30.0};

struct Arguments {
  std::string hub;
  std::vector<std::string> invites;
  std::string name = "light";
  std::size_t replicas = 1;
  std::string elements = "1000";
  std::optional<std::uint32_t> slot;
  std::string step_time;
  std::size_t lanes = 1;
  std::string silence = "5s";
  std::string book;
  bool loses_returned = false;
  bool json = false;
};

// What all replicas of the process share.
struct Task {
  Job job;
  std::size_t elements = 0;
  std::optional<Seconds> step_time;  // none: the scenario's
  std::size_t lanes = 1;
  Seconds silence{5.0};
  bool loses_returned = false;
  bool json = false;
};

// Waits as long as it takes, with a look at Ctrl-C now and then.
template <typename Try>
auto patiently(Try what) -> decltype(what(Deadline())) {
  for (;;) {
    auto result = what(deadline_after(kPatience));
    if (result.ok() || result.error().code != ErrorCode::kDeadline || is_interrupted())
      return result;
  }
}

std::vector<double> seconds_of(const std::vector<Seconds>& times) {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Seconds time : times) seconds.push_back(time.count());
  return seconds;
}

class LightReplica {
 public:
  LightReplica(const Task& task, HubAccess access, std::optional<std::uint32_t> slot,
               std::string book)
      : task_(task), access_(std::move(access)), asked_(slot), book_(std::move(book)) {}

  Status run() {
    const std::unique_ptr<Connector> connector = make_grpc_connector(access_.address, access_.tls);
    HubClient client(client_options(), *connector, clock_);
    const Result<std::size_t> slot =
        patiently([&](Deadline deadline) { return client.slot(deadline); });
    if (!slot.ok()) return slot.error();
    Result<EngineOptions> engine = engine_options(task_.job, layers());
    if (!engine.ok()) return engine.error();
    engine->slot = *slot;
    LightLearner learner(*slot, task_.elements);
    Book book(book_, *slot, learner, client);
    book.loses_returned = task_.loses_returned;
    Replica replica(
        {.engine = *engine, .workers = workers_, .clock = clock_, .step_time = step_time(*slot)},
        book.learner(), client, book.exchange());
    learner.replica = &replica;
    Status started = patiently([&](Deadline deadline) { return replica.start(deadline); });
    if (!started.ok()) return started;
    book.watch(replica, engine->clip);
    tell("started", {{"slot", *slot}});
    start_ = clock_.now();
    Status trained = train(replica);
    if (!trained.ok()) return trained;
    if (is_interrupted()) {
      client.leave();
      return Done{};
    }
    const Result<StepFacts> drained =
        patiently([&](Deadline deadline) { return replica.finish(deadline); });
    if (!drained.ok()) return drained.error();
    book.finish();
    tell("finished", {{"slot", *slot},
                      {"steps", replica.engine().steps_done()},
                      {"digest", digest_text(replica.engine().shared())},
                      {"time_s", Seconds(clock_.now() - start_).count()},
                      {"computing_s", computing_.count()},
                      {"waiting_s", waiting_.count()},
                      {"sat_out", sat_out_},
                      {"restarts", replica.restarts()},
                      {"reconnections", client.reconnections()},
                      {"round_trips_s", seconds_of(client.round_trips())}});
    client.leave();  // when all is told: a hub that everyone has left ends
    return Done{};
  }

 private:
  [[nodiscard]] LayerTable layers() const {
    return {{.name = "all", .offset = 0, .count = task_.elements}};
  }
  [[nodiscard]] ClientOptions client_options() const {
    const std::vector<float> ones(task_.elements, 1.0F);
    const std::span bytes = std::as_bytes(std::span(ones));
    return {.name = access_.name,
            .token = access_.token,
            .slot = asked_,
            .elements = task_.elements,
            .initial = std::make_shared<const ByteBuffer>(bytes.begin(), bytes.end()),
            .lanes = task_.lanes,
            .compute = step_time(asked_.value_or(0)),
            .silence = task_.silence};
  }
  [[nodiscard]] Seconds step_time(std::size_t slot) const {
    const auto& replicas = task_.job.scenario.replicas;
    return task_.step_time.value_or(replicas[slot % replicas.size()].step_time);
  }

  Status train(Replica& replica) {
    while (!is_interrupted()) {
      const Result<StepFacts> facts =
          patiently([&](Deadline deadline) { return replica.step(deadline); });
      if (!facts.ok()) {
        if (is_interrupted() && facts.error().code == ErrorCode::kDeadline) break;
        return facts.error();
      }
      if (facts->stance == Stance::kFinish) break;
      if (facts->stance == Stance::kSitOut) ++sat_out_;
      computing_ += facts->computing;
      waiting_ += facts->waiting;
      tell("step", {{"step", replica.engine().steps_done()},
                    {"time_s", Seconds(clock_.now() - start_).count()},
                    {"loss", facts->loss},
                    {"passes", facts->passes},
                    {"took_part", facts->stance == Stance::kTakePart}});
    }
    return Done{};
  }

  void tell(const std::string& event, nlohmann::ordered_json fields) const {
    if (!task_.json) return;
    fields["name"] = access_.name;
    print_event(event, fields);
  }

  const Task& task_;
  HubAccess access_;
  std::optional<std::uint32_t> asked_;
  std::string book_;  // a file
  Clock clock_;
  Workers workers_{1};
  TimePoint start_;
  Seconds computing_{};
  Seconds waiting_{};
  std::size_t sat_out_ = 0;
};

Result<std::vector<HubAccess>> accesses_of(const Arguments& arguments) {
  std::vector<HubAccess> all;
  const std::size_t count = std::max(arguments.replicas, arguments.invites.size());
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string invite;
    std::string name;
    if (arguments.invites.empty()) {
      name = count == 1 ? arguments.name : arguments.name + '-' + std::to_string(i);
    } else {
      invite = arguments.invites[i % arguments.invites.size()];
    }
    Result<HubAccess> access = hub_access(invite, arguments.hub, name);
    if (!access.ok()) return access.error();
    all.push_back(std::move(access).value());
  }
  return all;
}

Result<Task> task_for(const Arguments& arguments, const HubAccess& access) {
  const Result<std::uint64_t> elements = parse_count(arguments.elements);
  if (!elements.ok()) return Error(elements.error()).within("--elements");
  const Result<Seconds> silence = parse_duration(arguments.silence);
  if (!silence.ok()) return Error(silence.error()).within("--silence");
  std::optional<Seconds> step_time;
  if (!arguments.step_time.empty()) {
    const Result<Seconds> parsed = parse_duration(arguments.step_time);
    if (!parsed.ok()) return Error(parsed.error()).within("--step-time");
    step_time = *parsed;
  }
  const std::unique_ptr<Connector> connector = make_grpc_connector(access.address, access.tls);
  const Result<v1::Task> told =
      ask_for_task(*connector, access.name, access.token, deadline_after(kAskTimeout));
  if (!told.ok()) return told.error();
  Result<Job> job = job_of(*told, trainer::catalogue());
  if (!job.ok()) return job.error();
  return Task{.job = std::move(job).value(),
              .elements = *elements,
              .step_time = step_time,
              .lanes = arguments.lanes,
              .silence = *silence,
              .loses_returned = arguments.loses_returned,
              .json = arguments.json};
}

int complain(const Error& error) {
  std::cerr << "longhaul_light_replica: " << error.message << '\n';
  return error.code == ErrorCode::kInvalidArgument ? kExitWrongUse : kExitFailed;
}

int run(const Arguments& arguments) {
  const Result<std::vector<HubAccess>> accesses = accesses_of(arguments);
  if (!accesses.ok()) return complain(accesses.error());
  notice_interrupts();
  keep_freed_memory();
  const Result<Task> task = task_for(arguments, accesses->front());
  if (!task.ok()) return complain(task.error());
  std::vector<std::unique_ptr<LightReplica>> replicas;
  std::vector<Status> outcomes(accesses->size(), Done{});
  {
    std::vector<std::jthread> threads;
    threads.reserve(accesses->size());
    for (std::size_t i = 0; i < accesses->size(); ++i) {
      std::optional<std::uint32_t> slot;
      if (arguments.slot) slot = *arguments.slot + static_cast<std::uint32_t>(i);
      replicas.push_back(
          std::make_unique<LightReplica>(*task, (*accesses)[i], slot, arguments.book));
      threads.emplace_back([&, i] { outcomes[i] = replicas[i]->run(); });
    }
  }
  if (is_interrupted()) return kExitInterrupted;
  for (const Status& outcome : outcomes) {
    if (!outcome.ok()) return complain(outcome.error());
  }
  return kExitDone;
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CLI::App program{"Replicas without torch, for tests and measurements"};
  program.add_option("--hub", arguments.hub, "HOST:PORT of a hub without TLS");
  program.add_option("--invite", arguments.invites, "Invite, one for each replica; repeatable");
  program.add_option("--name", arguments.name, "Name of the replica; of several, how they begin");
  program.add_option("--replicas", arguments.replicas, "Replicas, as threads of this process");
  program.add_option("--elements", arguments.elements, "Size of the model, such as 25M");
  program.add_option("--slot", arguments.slot, "Of the first replica; the others follow");
  program.add_option("--step-time", arguments.step_time, "Pace (default: the scenario's)");
  program.add_option("--lanes", arguments.lanes, "Data connections of each replica");
  program.add_option("--silence", arguments.silence, "After which the hub counts as gone");
  program.add_option("--book", arguments.book, "File to keep the books in, for tests");
  program.add_flag("--lose-returned", arguments.loses_returned,
                   "A mistake on purpose, with --book: updates that come back are forgotten");
  program.add_flag("--json", arguments.json, "Events, one JSON object per line");
  CLI11_PARSE(program, argc, argv);
  return run(arguments);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) { return longhaul::bench::main_of(argc, argv); }
