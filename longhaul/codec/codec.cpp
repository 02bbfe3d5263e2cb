#include "longhaul/codec/codec.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "longhaul/codec/chunk_top_k.h"
#include "longhaul/codec/dense.h"
#include "longhaul/codec/difference.h"
#include "longhaul/codec/low_rank.h"
#include "longhaul/codec/payload.h"
#include "longhaul/codec/random_k.h"
#include "longhaul/codec/threshold.h"
#include "longhaul/codec/tile_writer.h"
#include "longhaul/codec/top_k.h"

namespace longhaul {
namespace {

struct CodecRow {
  CodecKind kind;
  std::string_view name;
  ValueFormat usual_format;
  std::unique_ptr<Codec> (*make)(const CodecOptions&, const LayerTable&, Workers&);
};

template <typename Kind>
std::unique_ptr<Codec> make_with_format(const CodecOptions& spec, const LayerTable&,
                                        Workers& workers) {
  return std::make_unique<Kind>(spec.values, workers);
}

std::unique_ptr<Codec> make_sign(const CodecOptions&, const LayerTable&, Workers& workers) {
  return std::make_unique<Dense>(ValueFormat::k1Bit, workers);
}

std::unique_ptr<Codec> make_threshold(const CodecOptions& spec, const LayerTable&,
                                      Workers& workers) {
  return std::make_unique<Threshold>(spec.threshold, spec.values, workers);
}

std::unique_ptr<Codec> make_low_rank(const CodecOptions& spec, const LayerTable& layers, Workers&) {
  return std::make_unique<LowRank>(spec.rank, spec.values, layers);
}

std::unique_ptr<Codec> make_shared_low_rank(const CodecOptions& spec, const LayerTable& layers,
                                            Workers&) {
  return std::make_unique<SharedLowRank>(spec.rank, spec.values, layers);
}

// In the order of CodecKind.
constexpr std::array kCodecs{
    CodecRow{CodecKind::kDense, "dense", ValueFormat::kFp32, make_with_format<Dense>},
    CodecRow{CodecKind::kTopK, "top_k", ValueFormat::kBf16, make_with_format<TopK>},
    CodecRow{CodecKind::kChunkTopK, "chunk_top_k", ValueFormat::k2Bit, make_with_format<ChunkTopK>},
    CodecRow{CodecKind::kThreshold, "threshold", ValueFormat::kBf16, make_threshold},
    CodecRow{CodecKind::kRandomK, "random_k", ValueFormat::kBf16, make_with_format<RandomK>},
    CodecRow{CodecKind::kCocktail, "cocktail", ValueFormat::k4Bit, make_with_format<Cocktail>},
    CodecRow{CodecKind::kSign, "sign", ValueFormat::k1Bit, make_sign},
    CodecRow{CodecKind::kLowRank, "low_rank", ValueFormat::kFp32, make_low_rank},
    CodecRow{CodecKind::kSharedLowRank, "shared_low_rank", ValueFormat::kFp32,
             make_shared_low_rank},
};

const CodecRow& row_of(CodecKind kind) { return kCodecs.at(static_cast<std::size_t>(kind)); }

bool allows(CodecKind kind, ValueFormat format) {
  if (kind == CodecKind::kSign) return format == ValueFormat::k1Bit;
  if (kind == CodecKind::kLowRank || kind == CodecKind::kSharedLowRank)
    return format == ValueFormat::kFp32 || format == ValueFormat::kBf16;
  return true;
}

Error unknown_codec(std::string_view name) {
  std::string names;
  for (const CodecRow& row : kCodecs) names.append(names.empty() ? "" : ", ").append(row.name);
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
  std::string text(row_of(kind).name);
  return kind == CodecKind::kSign ? text : text.append("/").append(name_of(values));
}

Result<CodecOptions> parse_codec(std::string_view name) {
  const std::string_view kind = name.substr(0, name.find('/'));
  for (const CodecRow& row : kCodecs) {
    if (row.name != kind) continue;
    CodecOptions spec{.kind = row.kind, .values = row.usual_format};
    if (kind.size() == name.size()) return spec;
    const ValueFormat format = LONGHAUL_TRY(parse_value_format(name.substr(kind.size() + 1)));
    if (!allows(row.kind, format)) {
      return Error{ErrorCode::kInvalidArgument, "codec: " + std::string(kind) +
                                                    " does not come with " +
                                                    std::string(name_of(format)) + " values"};
    }
    spec.values = format;
    return spec;
  }
  return unknown_codec(name);
}

std::unique_ptr<Codec> make_codec(const CodecOptions& spec, const LayerTable& layers,
                                  Workers& workers) {
  return row_of(spec.kind).make(spec, layers, workers);
}

ByteBuffer Codec::take_difference(const TakeDifference& request, Workers& workers) {
  const std::size_t elements = request.position.size();
  Scratch<float> residual(elements);
  std::atomic<bool> is_usable = true;
  run_tiles(elements, workers, [&](std::size_t first, std::size_t count) {
    if (request.move) request.move(first, count);
    const std::span tile = std::span(residual).subspan(first, count);
    DifferenceReader(request).read(first, tile);
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
