// Reading an update that does not stand anywhere, piece by piece.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/tile.h"

namespace longhaul {

// The update of a TakeDifference, for one thread. It decodes what was told tile by tile: pieces in
// ascending order are the cheapest. All pieces lie in one tile.
class DifferenceReader {
 public:
  explicit DifferenceReader(const TakeDifference& request)
      : request_(request), told_(request.told.size()), next_(request.told.size()) {}

  // Elements from `first` on.
  void read(std::size_t first, std::span<float> out);
  // Marks what lies above the cut, and returns a magnitude that is not below the limit of the
  // request if there is one in the piece.
  float read_and_mark(std::size_t first, std::span<float> out, float cut,
                      std::span<std::uint64_t> marks);
  // The same as read() will find them once the local step is made.
  void preview(std::size_t first, std::span<float> out);

 private:
  template <typename Changed>
  bool subtract_told(std::size_t first, std::span<float> out, const Changed& changed);
  void decode(std::size_t tile);

  const TakeDifference& request_;
  std::size_t tile_ = std::numeric_limits<std::size_t>::max();
  std::vector<TileEntries> told_;  // of the tile; without positions: every element
  std::vector<std::size_t> next_;  // in told_: the first entry behind the last piece
  TileEntries scratch_;
};

// All of it, several tiles at once; nothing is moved.
void read_difference(const TakeDifference& request, Workers& workers, std::span<float> out);

}  // namespace longhaul
