#include "longhaul/exchange/simulated.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"

namespace longhaul {
namespace {

std::string mean_name(const RoundId& round) {
  return "mean." + std::to_string(round.step) + '.' + std::to_string(round.part);
}

std::string name_of_replica(const char* what, std::size_t replica) {
  return std::string(what) + '.' + std::to_string(replica);
}

}  // namespace

struct SimulatedNetwork::OpenRound {
  std::vector<ByteBuffer> payloads;
  std::vector<bool> has_submitted;
  std::size_t elements = 0;
  Seconds last_arrival{};
  std::shared_ptr<const std::vector<float>> mean;  // set when the round has closed
};

// One replica's side: touched only by that replica, and by the network in settle().
class SimulatedNetwork::Endpoint final : public Exchange {
 public:
  explicit Endpoint(const SimulatedPeer& peer) : weight(peer.weight), link(peer.link) {}

  void submit(Update update) override {
    outbox.push_back({.at = now, .update = std::move(update)});
  }

  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    const auto found = inbox.find(round);
    if (found == inbox.end()) {
      return Error{ErrorCode::kDeadline,
                   "round of step " + std::to_string(round.step) + " has not closed"};
    }
    now = std::max(now, found->second.at);
    Mean mean = std::move(found->second.mean);
    inbox.erase(found);
    return mean;
  }

  struct Sent {
    Seconds at{};
    Update update;
  };
  struct Arrived {
    Seconds at{};
    Mean mean;
  };
  float weight;
  SimulatedLink link;
  Seconds now{};
  std::deque<Sent> outbox;
  std::map<RoundId, Arrived> inbox;
};

SimulatedNetwork::SimulatedNetwork(const std::vector<SimulatedPeer>& peers, Workers& workers)
    : workers_(workers) {
  for (const SimulatedPeer& peer : peers) endpoints_.push_back(std::make_unique<Endpoint>(peer));
}

SimulatedNetwork::~SimulatedNetwork() = default;

Exchange& SimulatedNetwork::exchange(std::size_t replica) { return *endpoints_.at(replica); }

Seconds SimulatedNetwork::now(std::size_t replica) const { return endpoints_.at(replica)->now; }

void SimulatedNetwork::advance(std::size_t replica, Seconds by) {
  endpoints_.at(replica)->now += by;
}

void SimulatedNetwork::note(const Transfer& transfer) {
  (transfer.is_up ? bytes_up_ : bytes_down_) += transfer.bytes;
  if (observer_) observer_(transfer);
}

Status SimulatedNetwork::settle() {
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    Endpoint& endpoint = *endpoints_[i];
    for (auto& [at, update] : endpoint.outbox) {
      OpenRound& round = rounds_[update.round];
      if (round.payloads.empty()) {
        round.payloads.resize(endpoints_.size());
        round.has_submitted.resize(endpoints_.size());
        round.elements = update.elements;
      }
      LONGHAUL_CHECK_EQ(round.elements, update.elements);
      LONGHAUL_CHECK(!round.has_submitted[i]);
      const std::size_t bytes = update.payload.size();
      const Passage passage = endpoint.link.send_up(at, static_cast<double>(bytes));
      note({.replica = i,
            .is_up = true,
            .round = update.round,
            .begin = at,
            .first_byte = passage.first_byte,
            .end = passage.end,
            .bytes = bytes});
      round.last_arrival = std::max(round.last_arrival, passage.end);
      round.has_submitted[i] = true;
      round.payloads[i] = std::move(update.payload);
    }
    endpoint.outbox.clear();
  }
  for (auto& [id, round] : rounds_) {
    if (round.mean != nullptr) continue;  // closed before a later round failed
    if (std::ranges::count(round.has_submitted, true) <
        static_cast<std::ptrdiff_t>(endpoints_.size()))
      continue;
    Status closed = close(id, round);
    if (!closed.ok()) return closed;
  }
  std::erase_if(rounds_, [](const auto& entry) { return entry.second.mean != nullptr; });
  return Done{};
}

Status SimulatedNetwork::close(RoundId id, OpenRound& round) {
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    submissions.push_back({.weight = endpoints_[i]->weight, .payload = round.payloads[i]});
  }
  Result<RoundMean> mean = mean_of_round(submissions, round.elements, workers_);
  if (!mean.ok()) return std::move(mean).error().within("round of step " + std::to_string(id.step));
  if (compressor_) compressor_->compress(*mean, id.step);
  round.mean = std::make_shared<const std::vector<float>>(std::move(mean->values));
  std::optional<Plan> next_plan;
  if (planner_) {
    next_plan = planner_(
        {.id = id, .time = round.last_arrival, .submissions = submissions, .mean = *round.mean});
  }
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const std::size_t bytes = mean->down[i].bytes;
    const Passage passage =
        endpoints_[i]->link.send_down(round.last_arrival, static_cast<double>(bytes));
    note({.replica = i,
          .is_up = false,
          .round = id,
          .begin = round.last_arrival,
          .first_byte = passage.first_byte,
          .end = passage.end,
          .bytes = bytes});
    endpoints_[i]->inbox[id] = {
        .at = passage.end, .mean = {.round = id, .values = round.mean, .next_plan = next_plan}};
  }
  return Done{};
}

void SimulatedNetwork::save(State& state) const {
  LONGHAUL_CHECK(rounds_.empty() && !planner_);
  std::vector<double> clocks;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    Endpoint& endpoint = *endpoints_[i];
    LONGHAUL_CHECK(endpoint.outbox.empty());
    clocks.push_back(endpoint.now.count());
    clocks.push_back(endpoint.link.up().free_at().count());
    clocks.push_back(endpoint.link.down().free_at().count());
    std::vector<std::uint64_t> rounds;
    std::vector<std::uint64_t> parts;
    std::vector<double> times;
    for (const auto& [round, arrived] : endpoint.inbox) {
      rounds.push_back(round.step);
      parts.push_back(round.part);
      times.push_back(arrived.at.count());
      state.tensors[mean_name(round)] = *arrived.mean.values;
    }
    state.values[name_of_replica("network.means", i)] = rounds;
    state.values[name_of_replica("network.parts", i)] = parts;
    state.values[name_of_replica("network.times", i)] = times;
  }
  state.values["network.clocks"] = clocks;
  if (compressor_) compressor_->save(state);
  state.values["network.bytes"] = std::vector<std::uint64_t>{bytes_up_, bytes_down_};
}

Status SimulatedNetwork::load(const State& state) {
  const auto clocks = state.value<std::vector<double>>("network.clocks");
  const auto bytes = state.value<std::vector<std::uint64_t>>("network.bytes");
  if (!clocks.ok()) return clocks.error();
  if (!bytes.ok()) return bytes.error();
  if (clocks->size() != 3 * endpoints_.size() || bytes->size() != 2)
    return Error{ErrorCode::kMismatch, "network: of another number of replicas"};
  std::map<RoundId, std::shared_ptr<const std::vector<float>>> means;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const auto rounds =
        state.value<std::vector<std::uint64_t>>(name_of_replica("network.means", i));
    const auto parts = state.value<std::vector<std::uint64_t>>(name_of_replica("network.parts", i));
    const auto times = state.value<std::vector<double>>(name_of_replica("network.times", i));
    if (!rounds.ok()) return rounds.error();
    if (!parts.ok()) return parts.error();
    if (!times.ok()) return times.error();
    if (rounds->size() != times->size() || rounds->size() != parts->size())
      return Error{ErrorCode::kMismatch, "network: not one time for each mean"};
    Endpoint& endpoint = *endpoints_[i];
    endpoint.now = Seconds((*clocks)[3 * i]);
    endpoint.link.up().set_free_at(Seconds((*clocks)[3 * i + 1]));
    endpoint.link.down().set_free_at(Seconds((*clocks)[3 * i + 2]));
    for (std::size_t k = 0; k < rounds->size(); ++k) {
      const RoundId round{.step = (*rounds)[k], .part = static_cast<std::uint32_t>((*parts)[k])};
      auto& values = means[round];
      const auto saved = state.tensors.find(mean_name(round));
      if (saved == state.tensors.end())
        return Error{ErrorCode::kMismatch, "network: a mean is missing"};
      if (values == nullptr) values = std::make_shared<const std::vector<float>>(saved->second);
      endpoint.inbox[round] = {.at = Seconds((*times)[k]),
                               .mean = {.round = round, .values = values}};
    }
  }
  if (compressor_) {
    Status loaded = compressor_->load(state);
    if (!loaded.ok()) return loaded;
  }
  bytes_up_ = bytes->front();
  bytes_down_ = bytes->back();
  return Done{};
}

}  // namespace longhaul
