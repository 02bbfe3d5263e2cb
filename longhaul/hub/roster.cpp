#include "longhaul/hub/roster.h"

#include <algorithm>
#include <set>
#include <utility>

namespace longhaul {

Roster::Roster(RunRecord run, std::filesystem::path directory, std::size_t slots,
               std::vector<float> weights)
    : run_(std::move(run)),
      directory_(std::move(directory)),
      slots_(slots),
      weights_(std::move(weights)) {}

void Roster::resume(const RunRecord& run) {
  run_ = run;
  for (const auto& [name, slot] : run_.slots) replicas_[name].slot = slot;
}

Status Roster::end_after(std::uint64_t last_step) {
  run_.last_step = last_step;
  return keep();
}

Status Roster::keep() const {
  if (directory_.empty()) return Done{};
  return Journal::write_run(directory_, run_);
}

Result<std::size_t> Roster::slot_for(const v1::Join& join) const {
  const auto known = replicas_.find(join.name());
  if (known != replicas_.end()) return known->second.slot;
  std::set<std::size_t> taken;
  for (const auto& [name, replica] : replicas_) taken.insert(replica.slot);
  if (join.has_slot()) {
    if (join.slot() < slots_ && !taken.contains(join.slot())) return std::size_t{join.slot()};
    return Error{ErrorCode::kMismatch,
                 "slot " + std::to_string(join.slot()) + " is taken or not there"};
  }
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (!taken.contains(slot)) return slot;
  }
  return Error{ErrorCode::kMismatch,
               "the scenario has " + std::to_string(slots_) + " replicas, and all are taken"};
}

Status Roster::enter(const std::string& name, std::size_t slot) {
  const bool is_new = !replicas_.contains(name);
  ReplicaStatus& replica = replicas_[name];
  replica.slot = slot;
  if (slot < weights_.size()) replica.weight = weights_[slot];
  if (!is_new) return Done{};
  run_.slots[name] = slot;
  return keep();
}

std::vector<std::string> Roster::forget_absent() {
  std::vector<std::string> absent;
  for (const auto& [name, replica] : replicas_) {
    if (peer_of(name) == nullptr) absent.push_back(name);
  }
  for (const std::string& name : absent) {
    replicas_.erase(name);
    run_.slots.erase(name);
  }
  return absent;
}

void Roster::note_absent(TimePoint now) {
  for (auto& [name, replica] : replicas_) {
    if (!replica.away_since && peer_of(name) == nullptr) replica.away_since = now;
  }
}

void Roster::take_report(const Peer& peer, const v1::Report& report) {
  ReplicaStatus& replica = of(peer);
  if (report.step() > 0) replica.step = report.step();  // else it only tells what it measured
  if (!is_plausible(report.compute_s())) return;
  replica.loss = report.loss();
  replica.waiting_share = report.waiting_share();
  if (report.passes() > 0) replica.passes = report.passes();
}

bool Roster::awaits_absent(TimePoint now, Seconds patience) const {
  return std::ranges::any_of(replicas_, [&](const auto& entry) {
    const ReplicaStatus& replica = entry.second;
    return !replica.has_left && now - replica.away_since.value_or(now) <= patience;
  });
}

Peer& Roster::add(std::unique_ptr<Peer> peer) {
  Peer& added = *peer;
  ReplicaStatus& replica = of(added);
  replica.has_left = false;
  replica.away_since.reset();
  replica.doubled_since.reset();
  here_[added.name()] = &added;
  peers_[added.control()] = std::move(peer);
  return added;
}

void Roster::add_lane(Peer& peer, StreamId id, StreamPtr stream) {
  lanes_[id] = &peer;
  peer.lanes.add(id, std::move(stream));
  of(peer).is_connected = peer.is_connected();
}

void Roster::remove(Peer& peer) {
  withdraw(peer);
  of(peer).is_connected = false;
  peer.close();
  here_.erase(peer.name());
  std::erase_if(lanes_, [&](const auto& lane) { return lane.second == &peer; });
  removed_.push_back(std::move(peers_.extract(peer.control()).mapped()));
}

void Roster::enroll(Peer& peer) {
  peer.progress.is_enrolled = true;
  of(peer).is_enrolled = true;
  ++changes_;
}

void Roster::withdraw(Peer& peer) {
  peer.progress.is_enrolled = false;
  of(peer).is_enrolled = false;
  ++changes_;
}

Peer* Roster::peer_on(StreamId stream) const {
  if (const auto control = peers_.find(stream); control != peers_.end())
    return control->second.get();
  const auto lane = lanes_.find(stream);
  return lane == lanes_.end() ? nullptr : lane->second;
}

Peer* Roster::peer_of(const std::string& name) const {
  const auto found = here_.find(name);
  return found == here_.end() ? nullptr : found->second;
}

}  // namespace longhaul
