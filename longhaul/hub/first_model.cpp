#include "longhaul/hub/first_model.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "longhaul/base/memory.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

Error refused(const std::string& why) { return Error{ErrorCode::kMismatch, why}; }

}  // namespace

Status FirstModel::check(const v1::Join& join, std::uint64_t run) const {
  if (join.elements() < 1 || join.elements() > most_)
    return refused("a model of " + std::to_string(join.elements()) +
                   " parameters; this hub takes at most " + std::to_string(most_));
  if (!join.is_fresh() && join.run() != run)
    return refused(
        "it has the state of another run than this hub's, which may have begun anew; move its "
        "checkpoint away, or name another place with --checkpoint");
  if (join.elements() < least_) return refused("a model with fewer parameters than fragments");
  const LayerTable layers = LONGHAUL_TRY(layers_from(join.layers(), join.elements()));
  if (elements_ == 0) return Done{};
  const bool is_other = join.elements() != elements_ || (layers_ && layers != *layers_);
  if (is_other) return refused("it has another model than the replicas that are here");
  if (join.is_fresh() && digest_ != 0 && join.initial() != digest_)
    return refused("it starts from other parameters than the replicas that are here (seed?)");
  return Done{};
}

void FirstModel::agree(const v1::Join& join) {
  elements_ = join.elements();
  layers_ = layers_from(join.layers(), elements_).value();
  if (join.is_fresh() && digest_ == 0) digest_ = join.initial();
}

void FirstModel::resume(LayerTable layers, std::uint64_t elements, std::uint64_t digest) {
  layers_ = std::move(layers);
  elements_ = elements;
  digest_ = digest;
  is_wanted_ = false;
}

void FirstModel::forget() {
  elements_ = digest_ = 0;
  layers_.reset();
  values_.clear();
}

void FirstModel::ask_for_values(const Roster& roster, TimePoint now) const {
  if (!is_wanted_ || is_here()) return;
  Peer* next = nullptr;
  for (const auto& [control, peer] : roster.peers()) {
    if (peer->progress.is_asked_for_state) return;
    if (next == nullptr && peer->is_connected() && peer->progress.is_fresh) next = peer.get();
  }
  if (next == nullptr) return;
  next->progress.is_asked_for_state = true;
  next->progress.next_news = time_after(now, kNewsOfModelEvery);
  Frame frame;
  frame.mutable_send_state();
  (void)next->send(std::move(frame));
}

Status FirstModel::receive(Peer& peer, ByteBuffer bytes, std::function<void(const Status&)> done) {
  if (!peer.progress.is_asked_for_state || !is_wanted_ || is_here()) return Done{};
  if (bytes.size() != elements_ * sizeof(float))
    return Error{ErrorCode::kMismatch, "an initial model of another size"};
  if (std::exchange(peer.progress.has_sent_state, true)) return Done{};
  run_errand(
      errands_,
      [bytes = std::move(bytes)]() mutable {
        std::vector<float> values(bytes.size() / sizeof(float));
        std::ranges::copy(bytes, std::as_writable_bytes(std::span(values)).begin());
        bytes = ByteBuffer();
        return_freed_memory();
        const std::uint64_t digest = digest_of(std::span<const float>(values));
        return std::pair(std::move(values), digest);
      },
      [this, done = std::move(done)](std::pair<std::vector<float>, std::uint64_t>&& model) {
        auto& [values, digest] = model;
        on_checked(std::move(values), digest == digest_, done);
      });
  return Done{};
}

// Its sender may have gone meanwhile, and the others may have chosen another model.
void FirstModel::on_checked(std::vector<float> values, bool is_right,
                            const std::function<void(const Status&)>& done) {
  if (!is_wanted_ || is_here()) return;
  if (values.size() != elements_ || !is_right)
    return done(Error{ErrorCode::kMismatch, "an initial model with another digest than it told"});
  values_ = std::move(values);
  done(Done{});
}

std::vector<float> FirstModel::take() {
  is_wanted_ = false;
  return std::exchange(values_, {});
}

}  // namespace longhaul
