// The k largest magnitudes of the whole update: exact in count, equal magnitudes resolved by index.
//
// One pass over memory. A small sample of decay·e + g tells roughly where the cut will be; the pass
// that forms e also marks what lies above a slightly lower cut; the exact cut is then found among
// those candidates alone. When the sample misleads (few candidates, or far too many), counting
// passes find the cut instead. Either way the result is the same: the estimate decides how fast it
// is, never what it is.
#pragma once

#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/tile_writer.h"

namespace longhaul {

class TopK final : public Codec {
 public:
  TopK(ValueFormat format, Workers& workers) : format_(format), workers_(workers) {}

  [[nodiscard]] ByteBuffer take(const TakeOptions& request) override;
  [[nodiscard]] ByteBuffer take_difference(const TakeOptions& request, Workers& workers) override;
  [[nodiscard]] double expected_bytes(std::size_t elements, double keep_ratio) const override;

  // The candidates of consecutive tiles, in ascending order.
  struct Candidates {
    std::size_t first_tile = 0;
    std::size_t end_tile = 0;
    std::vector<std::size_t> tile_ends;  // in `positions`, one per tile
    Scratch<std::uint16_t> positions;    // in their tile
    Scratch<float> values;
    std::size_t ties = 0;  // elements exactly at the final cut that this range may keep
    bool overflowed = false;
    bool is_usable = true;  // all of the tiles' elements are below the limit

    void clear();
  };

 private:
  ValueFormat format_;
  Workers& workers_;
  std::vector<Candidates>
      scratch_;  // saves fresh pages from call to call; holds nothing between calls
};

}  // namespace longhaul
