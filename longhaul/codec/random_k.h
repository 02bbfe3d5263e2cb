// A random share of the elements, drawn from the round's seed: no index travels.
#pragma once

#include "longhaul/codec/codec.h"

namespace longhaul {

ByteBuffer take_random(const TakeOptions& request, ValueFormat format, Workers& workers);

// The size of the payload.
std::size_t random_k_bytes(ValueFormat format, std::size_t elements, double keep_ratio);

// CocktailSGD's chain: a random subset drawn from the round's seed, the largest fifth of it, few
// bits for each.
ByteBuffer take_cocktail(const TakeOptions& request, ValueFormat format, Workers& workers);

// The expected size of the payload.
double cocktail_bytes(ValueFormat format, std::size_t elements, double keep_ratio);

}  // namespace longhaul
