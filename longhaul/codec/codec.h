// A codec turns an update into few bytes and keeps account of what it held back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "longhaul/base/bytes.h"
#include "longhaul/base/result.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/kernels.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/codec/value_format.h"

namespace longhaul {

// An update to take from. take() reads it from a residual and its increment. take_difference()
// forms it while it is taken: how far a replica is from where the others know it to be, shared - Σ
// announced - position.
struct TakeOptions {
  std::span<float> residual = {};  // e: in, what was held back so far; out, what is held back now
  std::span<const float> increment = {};  // g: added to the residual first; empty: nothing to add
  float residual_decay = 1.0F;            // the residual is multiplied by it before g is added

  std::span<const float> shared = {};
  std::span<const float> position = {};
  std::span<const WeightedPayload> announced = {};  // payloads that are on their way
  // If set: writes the position. Called once for each piece of it before that is read, from several
  // threads. `preview` gives a few elements of what it will write.
  std::function<void(std::size_t first, std::size_t count)> move = {};
  std::function<void(std::size_t first, std::span<float> out)> preview = {};
  float limit = std::numeric_limits<float>::infinity();  // an element as large as this is of no use

  double keep_ratio = 1.0;  // δ in (0, 1]; codecs that do not drop elements ignore it
  std::uint64_t seed = 0;   // equal on all replicas in one round, different between rounds

  [[nodiscard]] bool is_difference() const { return !position.empty(); }
  // Adds the increment to `count` elements of the residual from `first` on, and returns them.
  std::span<float> feed(std::size_t first, std::size_t count) const {
    const std::span part = residual.subspan(first, count);
    kernels::feed(part, increment_of(first, count), residual_decay);
    return part;
  }
  // The increment of these elements; empty if there is none.
  [[nodiscard]] std::span<const float> increment_of(std::size_t first, std::size_t count) const {
    return increment.empty() ? increment : increment.subspan(first, count);
  }
};

// The seed of a TakeOptions: different for every step and part, and for every seed of a study.
constexpr std::uint64_t seed_of_round(std::uint64_t seed, std::uint64_t step,
                                      std::uint64_t part = 0) {
  return seed * 0x9E3779B97F4A7C15U + step + part * 0xC2B2AE3D27D4EB4FU;
}

// Turns updates into payloads.
// Every codec conserves: what its payload decodes to plus what it leaves in the residual is what
// came in, to rounding. Payloads do not depend on the number of threads or on the CPU. Values must
// be finite: first_non_finite() tells, in a pass that the engine makes anyway.
class Codec {
 public:
  virtual ~Codec() = default;

  // A payload for PayloadView::parse; removes from the residual exactly what the payload decodes
  // to.
  [[nodiscard]] virtual ByteBuffer take(const TakeOptions& request) = 0;

  // The same for a difference: what the payload decodes to counts as announced from now on. Empty,
  // if an element is not below the limit.
  [[nodiscard]] virtual ByteBuffer take_difference(const TakeOptions& request, Workers& workers);

  // Bytes that take() will give, for planning: exact where the size does not depend on the values.
  [[nodiscard]] virtual double expected_bytes(std::size_t elements, double keep_ratio) const = 0;

  // The memory of the codec, for checkpoints, in place. Empty if the codec starts afresh each time.
  [[nodiscard]] virtual std::span<float> state() { return {}; }

  // The mean of a round was merged, as everyone merges it. A codec whose state depends on nothing
  // else has the same on all replicas, and gives it to those who join.
  virtual void learn(std::span<const float> /*mean*/) {}
  [[nodiscard]] virtual bool shares_state() const { return false; }
};

// The ways to choose the elements that are sent.
enum class CodecKind : std::uint8_t {
  kDense,
  kTopK,
  kChunkTopK,
  kThreshold,
  kRandomK,
  kCocktail,
  kSign,
  kLowRank,
  kSharedLowRank  // on a basis that all replicas have learnt from the means
};

// By the keep ratio that it is given.
bool drops_elements(CodecKind kind);

// A codec as recipes name it: its kind, its value format, its rank.
struct CodecOptions {
  CodecKind kind = CodecKind::kDense;
  ValueFormat values = ValueFormat::kFp32;
  float threshold = 1e-3F;  // kThreshold: smallest magnitude that is sent
  std::uint32_t rank = 4;   // kLowRank, kSharedLowRank

  [[nodiscard]] std::string name() const;  // "top_k/bf16"
};

// Reads "top_k/bf16", "sign", "cocktail", …; without a format, the codec's usual one.
Result<CodecOptions> parse_codec(std::string_view name);

// The codec of a spec for updates laid out like `layers` (which only low rank looks at; empty: one
// vector). `workers` must outlive it.
std::unique_ptr<Codec> make_codec(const CodecOptions& spec, const LayerTable& layers,
                                  Workers& workers);

// An update that the engine must not merge: an error that names the first position that is NaN or
// infinite.
Status check_finite(std::span<const float> values);

}  // namespace longhaul
