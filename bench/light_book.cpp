#include "bench/light_book.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "longhaul/codec/digest.h"
#include "longhaul/codec/payload.h"

namespace longhaul::bench {
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

BookFile::BookFile(const std::string& path) {
  if (!path.empty()) file_.open(path, std::ios::app);
}

void BookFile::write(const Json& entry) {
  const std::string line = entry.dump() + '\n';
  const MutexLock lock(mutex_);
  file_ << line << std::flush;
}

Book::Book(BookFile& file, std::size_t slot, std::size_t elements)
    : file_(file), slot_(slot), elements_(elements) {}

Json Book::entry(const std::string& event, std::uint64_t step) const {
  return {
      {"event", event}, {"slot", slot_}, {"process", ::getpid()}, {"life", life_}, {"step", step}};
}

std::vector<float> Book::values_of(ByteView payload) const {
  std::vector<float> values(elements_);
  if (payload.empty()) return values;
  const Result<PayloadView> view = PayloadView::parse(payload, elements_);
  if (view.ok()) add(*view, 1.0F, values);
  return values;
}

void Book::begin_life(std::uint64_t step) {
  if (!is_kept()) return;
  ++life_;
  account_ = {.values = std::vector<double>(elements_)};
  sent_.clear();
  file_.write(entry("began", step));
}

void Book::updated(std::uint64_t step, std::span<const float> update) {
  if (!is_kept()) return;
  for (std::size_t i = 0; i < elements_; ++i) {
    const auto value = static_cast<double>(update[i]);
    account_.values[i] += value;
    account_.magnitude += std::abs(value);
  }
  Json line = entry("updated", step);
  put_vector(line, update);
  file_.write(line);
}

void Book::submitted(const Update& update) {
  if (!is_kept()) return;
  Json line = entry("submitted", update.round.step);
  line["digest"] = digest_of(update.payload);
  line["bytes"] = update.payload.size();
  put_vector(line, values_of(update.payload));
  file_.write(line);
  sent_[update.round.step] = update.payload;
}

void Book::collected(const Mean& mean) {
  if (!is_kept()) return;
  const std::uint64_t step = mean.round.step;
  if (auto sent = sent_.extract(step)) {
    if (mean.returned.empty()) {
      const std::vector<float> values = values_of(sent.mapped());
      for (std::size_t i = 0; i < elements_; ++i)
        account_.values[i] -= static_cast<double>(values[i]);
    }
  }
  Json line = entry("merged", step);
  line["digest"] = digest_text(*mean.values);
  line["returned"] =
      mean.returned.empty() ? Json(nullptr) : Json(digest_of(ByteView(mean.returned)));
  put_vector(line, *mean.values);
  file_.write(line);
}

void Book::finish(const Engine& engine, bool is_exact) {
  if (!is_kept()) return;
  Json line = entry("finished", engine.steps_done());
  line["digest"] = digest_text(engine.shared());
  line["unsettled"] = sent_.size();
  // |Σ updates - Σ contributions to means - residual| / Σ |update|
  double off = 0;
  for (std::size_t i = 0; i < elements_; ++i)
    off += std::abs(account_.values[i] - static_cast<double>(engine.residual()[i]));
  line["imbalance"] = is_exact && account_.magnitude > 0 ? Json(off / account_.magnitude) : Json();
  put_vector(line, engine.residual());
  file_.write(line);
}

}  // namespace longhaul::bench
