#include "longhaul/exchange/simulated.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/accumulate.h"

namespace longhaul {
namespace {

std::string mean_name(const RoundId& round) {
  return "mean." + std::to_string(round.step) + '.' + std::to_string(round.part);
}

// Dense ones are tensors; sparse ones are payloads, with the number of their elements as a value.
Result<Mean> saved_mean(RoundId round, const State& state) {
  const std::string name = mean_name(round);
  if (const auto dense = state.tensors.find(name); dense != state.tensors.end())
    return Mean{.round = round,
                .values = std::make_shared<const std::vector<float>>(dense->second)};
  const Result<ByteView> saved = state.blob(name);
  const auto elements = state.value<std::uint64_t>(name);
  if (!saved.ok()) return saved.error();
  if (!elements.ok()) return elements.error();
  Result<CheckedPayload> payload =
      CheckedPayload::check(ByteBuffer(saved->begin(), saved->end()), *elements);
  if (!payload.ok()) return std::move(payload).error().within(name);
  return Mean{.round = round, .terms = {{.payload = std::move(payload).value()}}};
}

std::string name_of_replica(const char* what, std::size_t replica) {
  return std::string(what) + '.' + std::to_string(replica);
}

}  // namespace

struct SimulatedNetwork::OpenRound {
  std::vector<WeightedPayload> sent;  // by replica
  std::vector<bool> has_submitted;
  std::size_t elements = 0;
  Seconds last_arrival{};
};

// One replica's side: touched only by that replica, and by the network in settle().
class SimulatedNetwork::Endpoint final : public Exchange {
 public:
  explicit Endpoint(const SimulatedPeer& peer)
      : weight(peer.weight),
        up(peer.link.up, peer.link.latency),
        down(peer.link.down, peer.link.latency) {}

  void submit(Update update) override { outbox.emplace_back(now, std::move(update)); }

  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    const auto found = inbox.find(round);
    if (found == inbox.end()) {
      return Error{ErrorCode::kDeadline,
                   "round of step " + std::to_string(round.step) + " has not closed"};
    }
    auto& [at, arrived] = found->second;
    now = std::max(now, at);
    Mean mean = std::move(arrived);
    inbox.erase(found);
    return mean;
  }

  float weight;
  Fifo up;
  Fifo down;
  Seconds now{};
  // Both with the time of sending or arriving.
  std::deque<std::pair<Seconds, Update>> outbox;
  std::map<RoundId, std::pair<Seconds, Mean>> inbox;
};

SimulatedNetwork::SimulatedNetwork(const std::vector<SimulatedPeer>& peers, Workers& workers)
    : workers_(workers) {
  for (const SimulatedPeer& peer : peers) endpoints_.push_back(std::make_unique<Endpoint>(peer));
}

SimulatedNetwork::~SimulatedNetwork() = default;

Exchange& SimulatedNetwork::exchange(std::size_t replica) { return *endpoints_.at(replica); }

Seconds SimulatedNetwork::now(std::size_t replica) const { return endpoints_.at(replica)->now; }

std::size_t SimulatedNetwork::in_flight(std::size_t replica) const {
  const Endpoint& endpoint = *endpoints_.at(replica);
  const auto open = std::ranges::count_if(
      rounds_, [&](const auto& entry) { return entry.second.has_submitted[replica]; });
  return endpoint.outbox.size() + static_cast<std::size_t>(open) + endpoint.inbox.size();
}

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
      if (round.sent.empty()) {
        for (const auto& one : endpoints_) round.sent.push_back({.weight = one->weight});
        round.has_submitted.resize(endpoints_.size());
        round.elements = update.elements;
      }
      const bool fits =
          update.elements == round.elements &&
          (update.payload.empty() || update.payload.view().elements() == round.elements);
      if (!fits)
        return Error{ErrorCode::kMismatch, "replica " + std::to_string(i) + ": round " +
                                               to_string(update.round) + " has another size"};
      LONGHAUL_CHECK(!round.has_submitted[i]);
      const std::size_t bytes = update.payload.size();
      const Seconds first_byte = endpoint.up.first_byte(at);
      const Seconds end = endpoint.up.send(at, static_cast<double>(bytes));
      note({.replica = i,
            .is_up = true,
            .round = update.round,
            .begin = at,
            .first_byte = first_byte,
            .end = end,
            .bytes = bytes});
      round.last_arrival = std::max(round.last_arrival, end);
      round.has_submitted[i] = true;
      round.sent[i].payload = std::move(update.payload);
    }
    endpoint.outbox.clear();
  }
  std::erase_if(rounds_, [&](const auto& entry) {
    if (std::ranges::find(entry.second.has_submitted, false) != entry.second.has_submitted.end())
      return false;
    close(entry.first, entry.second);
    return true;
  });
  return Done{};
}

// The mean that all replicas merge. A mean that is not sparse is summed once for all of them.
Mean SimulatedNetwork::mean_of(RoundId id, const CheckedPayload& payload) {
  Mean mean{.round = id, .terms = {{.payload = payload}}};
  if (mean.is_sparse()) return mean;
  auto values = std::make_shared<std::vector<float>>(mean.elements());
  sum_payloads(mean.terms, *values, workers_);
  return {.round = id, .values = std::move(values)};
}

void SimulatedNetwork::close(RoundId id, const OpenRound& round) {
  RoundMean mean = mean_of_round(round.sent, round.elements, workers_);
  if (compressor_) compressor_->compress(mean, id.step);
  Mean arriving = mean_of(id, mean.payload);
  if (planner_) {
    arriving.next_plan =
        planner_({.id = id, .time = round.last_arrival, .sent = round.sent, .mean = mean.payload});
  }
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    const std::size_t bytes = mean.down[i].bytes;
    Fifo& line = endpoints_[i]->down;
    const Seconds first_byte = line.first_byte(round.last_arrival);
    const Seconds end = line.send(round.last_arrival, static_cast<double>(bytes));
    note({.replica = i,
          .is_up = false,
          .round = id,
          .begin = round.last_arrival,
          .first_byte = first_byte,
          .end = end,
          .bytes = bytes});
    endpoints_[i]->inbox[id] = {end, arriving};
  }
}

void SimulatedNetwork::save(State& state) const {
  LONGHAUL_CHECK(rounds_.empty() && !planner_);
  std::vector<double> clocks;
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    Endpoint& endpoint = *endpoints_[i];
    LONGHAUL_CHECK(endpoint.outbox.empty());
    clocks.push_back(endpoint.now.count());
    clocks.push_back(endpoint.up.free_at().count());
    clocks.push_back(endpoint.down.free_at().count());
    std::vector<std::uint64_t> rounds;
    std::vector<std::uint64_t> parts;
    std::vector<double> times;
    for (const auto& [round, arrived] : endpoint.inbox) {
      const auto& [at, mean] = arrived;
      rounds.push_back(round.step);
      parts.push_back(round.part);
      times.push_back(at.count());
      if (mean.values) {
        state.tensors[mean_name(round)] = *mean.values;
      } else {
        state.blobs[mean_name(round)] = *mean.terms.front().payload.bytes();
        state.values[mean_name(round)] = std::uint64_t{mean.elements()};
      }
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
  std::map<RoundId, Mean> means;
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
    endpoint.up.set_free_at(Seconds((*clocks)[3 * i + 1]));
    endpoint.down.set_free_at(Seconds((*clocks)[3 * i + 2]));
    for (std::size_t k = 0; k < rounds->size(); ++k) {
      const RoundId round{.step = (*rounds)[k], .part = static_cast<std::uint32_t>((*parts)[k])};
      if (!means.contains(round)) {
        Result<Mean> mean = saved_mean(round, state);
        if (!mean.ok()) return std::move(mean).error().within("network");
        means[round] = std::move(mean).value();
      }
      endpoint.inbox[round] = {Seconds((*times)[k]), means[round]};
    }
  }
  if (compressor_) {
    LONGHAUL_TRY(compressor_->load(state));
  }
  bytes_up_ = bytes->front();
  bytes_down_ = bytes->back();
  return Done{};
}

}  // namespace longhaul
