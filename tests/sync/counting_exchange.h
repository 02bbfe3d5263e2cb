// An exchange that remembers what a replica of two parameters asks of it; every mean is one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "longhaul/exchange/exchange.h"

namespace longhaul::testing {

class CountingExchange final : public Exchange {
 public:
  void submit(Update update) override { updates.push_back(std::move(update)); }
  Result<Mean> collect(RoundId round, Deadline /*deadline*/) override {
    collected.push_back(round.step);
    return Mean{.round = round,
                .values = std::make_shared<const std::vector<float>>(2, 1.0F),
                .returned = returned};
  }

  std::vector<Update> updates;
  std::vector<std::uint64_t> collected;
  CheckedPayload returned;  // with every mean
};

}  // namespace longhaul::testing
