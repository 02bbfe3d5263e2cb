// Hears of a session as it goes on, on the training thread.
#pragma once

#include <cstdint>

#include "longhaul/exchange/hub_client.h"
#include "longhaul/sync/replica.h"

namespace longhaul {

class SessionObserver {
 public:
  virtual ~SessionObserver() = default;

  // The first step that it does is `step`.
  virtual void on_start(std::size_t slot, std::uint64_t step) = 0;
  virtual void on_step(const StepFacts& facts, const Engine& engine) = 0;
  // Its state was replaced by the hub's.
  virtual void on_replaced(const Replaced& replaced) = 0;
  // The shared model was scored, by this replica or by another one.
  virtual void on_score(const Score& score) = 0;
  virtual void on_link(const LinkNews& news) = 0;
  // A checkpoint of that step is on disk, or is not.
  virtual void on_checkpoint(const Result<std::uint64_t>& step) = 0;
};

}  // namespace longhaul
