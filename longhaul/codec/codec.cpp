#include "longhaul/codec/codec.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "longhaul/codec/chunk_top_k.h"
#include "longhaul/codec/dense.h"
#include "longhaul/codec/low_rank.h"
#include "longhaul/codec/payload.h"
#include "longhaul/codec/random_k.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/threshold.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_k.h"
#include "longhaul/codec/update_reader.h"

namespace longhaul {
namespace {

// Names and usual formats, in the order of CodecKind.
constexpr std::array<std::pair<std::string_view, ValueFormat>, 9> kCodecs{{
    {"dense", ValueFormat::kFp32},
    {"top_k", ValueFormat::kBf16},
    {"chunk_top_k", ValueFormat::k2Bit},
    {"threshold", ValueFormat::kBf16},
    {"random_k", ValueFormat::kBf16},
    {"cocktail", ValueFormat::k4Bit},
    {"sign", ValueFormat::k1Bit},
    {"low_rank", ValueFormat::kFp32},
    {"shared_low_rank", ValueFormat::kFp32},
}};

// All kinds that remember nothing from call to call.
class StatelessCodec final : public Codec {
 public:
  StatelessCodec(const CodecOptions& options, Workers& workers)
      : options_(options), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override {
    const ValueFormat format = options_.values;
    switch (options_.kind) {
      case CodecKind::kChunkTopK:
        return take_top_of_chunks(request, format, workers_);
      case CodecKind::kThreshold:
        return take_above(options_.threshold, request, format, workers_);
      case CodecKind::kRandomK:
        return take_random(request, format, workers_);
      case CodecKind::kCocktail:
        return take_cocktail(request, format, workers_);
      default:
        return take_dense(request, format, workers_);
    }
  }

  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override {
    const ValueFormat format = options_.values;
    switch (options_.kind) {
      case CodecKind::kChunkTopK:
        return chunk_top_k_bytes(format, elements, keep_ratio);
      case CodecKind::kThreshold:
        // The values decide how much is sent: the ratio says what share is expected to reach it.
        return expected_sparse_bytes(format, elements, kept_count(elements, keep_ratio));
      case CodecKind::kRandomK:
        return static_cast<double>(random_k_bytes(format, elements, keep_ratio));
      case CodecKind::kCocktail:
        return cocktail_bytes(format, elements, keep_ratio);
      default:
        return static_cast<double>(dense_bytes(format, elements));
    }
  }

 private:
  CodecOptions options_;
  Workers& workers_;
};

bool allows(CodecKind kind, ValueFormat format) {
  if (kind == CodecKind::kSign) return format == ValueFormat::k1Bit;
  if (kind == CodecKind::kLowRank || kind == CodecKind::kSharedLowRank)
    return format == ValueFormat::kFp32 || format == ValueFormat::kBf16;
  return true;
}

Error unknown_codec(std::string_view name) {
  std::string names;
  for (const auto& [known, format] : kCodecs) names.append(names.empty() ? "" : ", ").append(known);
  return Error{ErrorCode::kInvalidArgument, "codec: expected one of " + names +
                                                ", with a value format such as top_k/bf16, got \"" +
                                                std::string(name) + '"'};
}

}  // namespace

bool drops_elements(CodecKind kind) {
  return kind == CodecKind::kTopK || kind == CodecKind::kChunkTopK || kind == CodecKind::kRandomK ||
         kind == CodecKind::kCocktail;
}

std::string CodecOptions::name() const {
  const auto& [known, usual_format] = kCodecs.at(static_cast<std::size_t>(kind));
  std::string text(known);
  return kind == CodecKind::kSign ? text : text.append("/").append(name_of(values));
}

Result<CodecOptions> parse_codec(std::string_view name) {
  const std::string_view kind_name = name.substr(0, name.find('/'));
  for (std::size_t i = 0; i < kCodecs.size(); ++i) {
    const auto& [known, usual_format] = kCodecs[i];
    if (known != kind_name) continue;
    CodecOptions spec{.kind = static_cast<CodecKind>(i), .values = usual_format};
    if (kind_name.size() == name.size()) return spec;
    spec.values = LONGHAUL_TRY(parse_value_format(name.substr(kind_name.size() + 1)));
    if (allows(spec.kind, spec.values)) return spec;
    return Error{ErrorCode::kInvalidArgument, "codec: " + std::string(kind_name) +
                                                  " does not come with " +
                                                  std::string(name_of(spec.values)) + " values"};
  }
  return unknown_codec(name);
}

std::unique_ptr<Codec> make_codec(const CodecOptions& spec, const LayerTable& layers,
                                  Workers& workers) {
  switch (spec.kind) {
    case CodecKind::kTopK:
      return std::make_unique<TopK>(spec.values, workers);
    case CodecKind::kLowRank:
    case CodecKind::kSharedLowRank:
      return std::make_unique<LowRank>(spec, layers);
    case CodecKind::kSign: {
      CodecOptions dense = spec;
      dense.values = ValueFormat::k1Bit;
      return std::make_unique<StatelessCodec>(dense, workers);
    }
    default:
      return std::make_unique<StatelessCodec>(spec, workers);
  }
}

ByteBuffer Codec::take_difference(const TakeOptions& request, Workers& workers) {
  const std::size_t elements = request.position.size();
  Scratch<float> residual(elements);
  std::atomic<bool> is_usable = true;
  run_tiles(elements, workers, [&](std::size_t first, std::size_t count) {
    if (request.move) request.move(first, count);
    const std::span tile = std::span(residual).subspan(first, count);
    UpdateReader(request).read(first, tile);
    if (!(kernels::largest_magnitude(tile) < request.limit)) is_usable = false;
  });
  if (!is_usable) return {};
  return take({.residual = residual, .keep_ratio = request.keep_ratio, .seed = request.seed});
}

Status check_finite(std::span<const float> values) {
  const std::size_t position = kernels::first_non_finite(values);
  if (position == values.size()) return Done{};
  return Error{ErrorCode::kNotFinite, "element " + std::to_string(position) + " of " +
                                          std::to_string(values.size()) + " is not finite"};
}

}  // namespace longhaul
