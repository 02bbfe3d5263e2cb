#include "longhaul/session/book.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul {
namespace {

using Json = nlohmann::ordered_json;

// From -1 to 1, the same for an index everywhere.
double weight_of(std::size_t index) {
  std::uint64_t bits = (index + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((bits ^ (bits >> 31U)) >> 11U) * 0x1p-52 - 1.0;
}

void put_vector(Json& entry, std::span<const float> values) {
  double sum = 0;
  double projection = 0;
  double magnitude = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    sum += value;
    projection += value * weight_of(i);
    magnitude += std::abs(value);
  }
  entry["sum"] = sum;
  entry["projection"] = projection;
  entry["magnitude"] = magnitude;
}

}  // namespace

Book::Book(const std::string& path, std::size_t slot, Learner& learner, Exchange& exchange)
    : slot_(slot), learner_(learner), exchange_(exchange) {
  if (!path.empty()) file_.open(path, std::ios::app);
}

Json Book::entry(RoundId round) const {
  return {{"slot", slot_},
          {"process", ::getpid()},
          {"life", life_},
          {"step", round.step},
          {"part", round.part}};
}

std::vector<float> Book::values_of(RoundId round, const CheckedPayload& payload) const {
  std::vector<float> values(account_.size());
  if (payload.empty()) return values;
  const std::span<float> own = replica_->engine().part(round.part).of(std::span(values));
  add(payload.view(), 1.0F, own);
  return values;
}

void Book::watch(const Replica& replica, double clip) {
  replica_ = &replica;
  is_exact_ = clip <= 0;
  if (file_.is_open()) begin_life();
}

void Book::begin_life() {
  ++life_;
  restarts_ = replica_->restarts();
  account_.assign(learner_.parameters().size(), 0.0);
  magnitude_ = 0;
  sent_.clear();
  write_event(file_, "began", entry({.step = replica_->engine().steps_done()}));
}

double Book::compute_gradient() {
  if (replica_->restarts() != restarts_) begin_life();
  const double loss = learner_.compute_gradient();
  const std::span<const float> gradient = learner_.gradient();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const auto value = static_cast<double>(gradient[i]);
    account_[i] += value;
    magnitude_ += std::abs(value);
  }
  is_exact_ = is_exact_ && replica_->engine().plan().merge == Merge::kOptimizer;
  return loss;
}

void Book::submit(Update update) {
  Json line = entry(update.round);
  line["digest"] = digest_text(update.payload.digest());
  line["bytes"] = update.payload.size();
  put_vector(line, values_of(update.round, update.payload));
  write_event(file_, "submitted", line);
  sent_[update.round] = update.payload;
  exchange_.submit(std::move(update));
}

Result<Mean> Book::collect(RoundId round, Deadline deadline) {
  Mean mean = LONGHAUL_TRY(exchange_.collect(round, deadline));
  if (replica_->restarts() != restarts_) begin_life();
  settle(mean);
  if (loses_returned) mean.returned = {};
  return mean;
}

void Book::settle(const Mean& mean) {
  const auto sent = sent_.extract(mean.round);
  if (sent && mean.returned.empty()) {
    const std::vector<float> values = values_of(mean.round, sent.mapped());
    for (std::size_t i = 0; i < values.size(); ++i) account_[i] -= static_cast<double>(values[i]);
  }
  Json line = entry(mean.round);
  const std::vector<float> of_part = mean.to_vector();
  line["digest"] = digest_text(of_part);
  line["returned"] =
      mean.returned.empty() ? Json(nullptr) : Json(digest_text(mean.returned.digest()));
  std::vector<float> values(account_.size());
  std::ranges::copy(of_part,
                    replica_->engine().part(mean.round.part).of(std::span(values)).begin());
  put_vector(line, values);
  write_event(file_, "merged", line);
}

void Book::finish() {
  if (!file_.is_open()) return;
  const Engine& engine = replica_->engine();
  Json line = entry({.step = engine.steps_done()});
  line["digest"] = digest_text(engine.shared());
  line["unsettled"] = sent_.size();
  // |Σ gradients - Σ contributions to means - residual| / Σ |gradient|
  double off = 0;
  const std::vector<float> residual = engine.residual();
  for (std::size_t i = 0; i < account_.size(); ++i)
    off += std::abs(account_[i] - static_cast<double>(residual[i]));
  line["imbalance"] = is_exact_ && magnitude_ > 0 ? Json(off / magnitude_) : Json();
  put_vector(line, residual);
  write_event(file_, "finished", line);
}

}  // namespace longhaul
