// Updates that a replica sent after the checkpoint that it resumed from.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/payload.h"
#include "longhaul/sync/engine.h"

namespace longhaul {
namespace {

// Takes what was taken before.
class SentCodec final : public Codec {
 public:
  SentCodec(const ByteBuffer& payload, const PayloadView& view) : payload_(payload), view_(view) {}

  ByteBuffer take(const TakeOptions& request) override {
    add(view_, -1.0F, request.residual);
    return payload_;
  }
  ByteBuffer take_difference(const TakeOptions& /*request*/, Workers& /*workers*/) override {
    return payload_;
  }
  [[nodiscard]] double expected_bytes(std::size_t /*elements*/, double /*keep*/) const override {
    return static_cast<double>(payload_.size());
  }

 private:
  const ByteBuffer& payload_;
  const PayloadView& view_;
};

}  // namespace

// Where the update has a value, nothing is left to tell of that element.
void Engine::go_to_announced(const Part& part, const PayloadView& sent) {
  std::vector<float> values(part.count);
  add(sent, 1.0F, values);
  const std::vector<float> residual = rule_->residual();
  const std::span untold = part.of(std::span(residual));
  const std::span position = part.of(parameters_);
  for (std::size_t i = 0; i < part.count; ++i) {
    if (values[i] != 0.0F) position[i] += untold[i];
  }
}

Status Engine::submit_again(const SentUpdates& sent) {
  LONGHAUL_CHECK(options_.local_step == LocalStep::kCallers && has_local_steps(plan_.merge));
  std::map<std::uint32_t, PayloadView> again;  // by part
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    const auto found = sent.find({.step = step_, .part = i});
    if (!has_round(i) || found == sent.end() || found->second.empty()) continue;
    Result<PayloadView> view = PayloadView::parse(found->second, parts_[i].count);
    if (!view.ok())
      return std::move(view).error().within("sent update of step " + std::to_string(step_));
    again.emplace(i, std::move(view).value());
  }
  begin_step();
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    const auto found = again.find(i);
    if (found == again.end()) {
      send(i, {});
    } else {
      SentCodec codec(sent.at({.step = step_, .part = i}), found->second);
      send(i, rule_->take(parts_[i], codec, {}));
      go_to_announced(parts_[i], found->second);
    }
    part_is_ready(i, false);
  }
  return Done{};
}

}  // namespace longhaul
