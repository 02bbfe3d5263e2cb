// Functions that the kernel files share, compiled once per SIMD target. Include it after
// hwy/foreach_target.h.
#if defined(LONGHAUL_CODEC_KERNELS_TARGET_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LONGHAUL_CODEC_KERNELS_TARGET_H
#undef LONGHAUL_CODEC_KERNELS_TARGET_H
#else
#define LONGHAUL_CODEC_KERNELS_TARGET_H
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "longhaul/codec/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace longhaul::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most kLanes wide, so that partial sums are laid out alike everywhere.
using Floats = HWY_CAPPED(float, kLanes);
using Words = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
constexpr std::size_t kWidth = hn::MaxLanes(Floats());
static_assert(kLanes % kWidth == 0);

// Asks for what a loop will come to soon, also in the piece behind its own: loops over short pieces
// of several arrays are over before the hardware sees where they go. Beyond the end it does
// nothing.
HWY_INLINE void fetch_ahead(const float* here) {
  constexpr std::size_t kAhead = 1024;
  __builtin_prefetch(here + kAhead);
}

// Calls body(start) for each full vector and tail(i) for each element after the last of them.
template <std::size_t kStride, typename Body, typename TailBody>
HWY_INLINE void sweep(std::size_t count, const Body& body, const TailBody& tail) {
  std::size_t i = 0;
  for (; i + kStride <= count; i += kStride) body(i);
  for (; i < count; ++i) tail(i);
}

}  // namespace longhaul::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per target
