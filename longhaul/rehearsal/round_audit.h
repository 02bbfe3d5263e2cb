// Checks what a hub, killed and started again as often as it may be, tells of its rounds: does it
// make sense?
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/round/round_id.h"

namespace longhaul {

class RoundAudit {
 public:
  void on_round(const nlohmann::ordered_json& event);
  void on_status(const nlohmann::ordered_json& event);
  // Another hub goes on from the journal: what the last one could not tell any more is missing.
  void on_new_hub() { may_miss_ = true; }

  // Every round closed once and in order, nobody twice in one, and all models were equal.
  // `steps`: of the whole run.
  [[nodiscard]] Status verdict(std::size_t steps) const;
  [[nodiscard]] std::uint64_t contributions() const { return contributions_; }
  // That were told of.
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  void note(const std::string& what);

  RoundId end_;   // behind the last round
  RoundId next_;  // the round after the last one
  bool may_miss_ = false;
  std::uint64_t rounds_ = 0;
  std::uint64_t contributions_ = 0;
  std::optional<Error> wrong_;
};

}  // namespace longhaul
