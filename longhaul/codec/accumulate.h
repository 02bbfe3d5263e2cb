// Summing the payloads of a round: tile by tile, in cache, in parallel over tiles; always in the
// order given, so that everyone who sums gets the same bits. Empty payloads count as zero.
#pragma once

#include <span>

#include "longhaul/base/workers.h"
#include "longhaul/codec/payload.h"

namespace longhaul {

// out = Σ weight · payload. All have out.size() elements.
void sum_payloads(std::span<const WeightedPayload> payloads, std::span<float> out,
                  Workers& workers);

// The same sum as one payload in fp32, of the elements that any of them names. It is dense where
// one of them is, or where that is smaller.
CheckedPayload encode_union(std::span<const WeightedPayload> payloads, std::size_t elements,
                            Workers& workers);

}  // namespace longhaul
