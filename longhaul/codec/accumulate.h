// Summing the payloads of a round: tile by tile, in cache, in parallel over tiles; always in the
// order given, so that everyone who sums gets the same bits.
#pragma once

#include <span>

#include "longhaul/base/bytes.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/payload.h"

namespace longhaul {

struct Contribution {
  const PayloadView* payload = nullptr;
  float weight = 1.0F;
};

// out = Σ weight · payload, in the order of `contributions`. All have out.size() elements.
void sum_payloads(std::span<const Contribution> contributions, std::span<float> out,
                  Workers& workers);

// A payload with the elements of `sum` that any contribution names, in fp32: exactly what
// sum_payloads() gave. It is dense where a contribution is, or where that is smaller.
ByteBuffer encode_union(std::span<const Contribution> contributions, std::span<const float> sum,
                        Workers& workers);

}  // namespace longhaul
