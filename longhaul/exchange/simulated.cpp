#include "longhaul/exchange/simulated.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {

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

}  // namespace longhaul
