// Reading the update of a TakeOptions piece by piece, wherever it stands.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "longhaul/codec/codec.h"
#include "longhaul/codec/tile.h"

namespace longhaul {

// Reads an update tile by tile, without storing it.
// For one thread. A residual is read where it stands. A difference is formed in a scratch; what was
// announced is decoded tile by tile, so pieces in ascending order are the cheapest. A piece lies in
// one tile.
class UpdateReader {
 public:
  explicit UpdateReader(const TakeOptions& request)
      : request_(request), decoded_(request.announced.size()), next_(request.announced.size()) {}

  // The elements from `first` on, as many as `scratch` has room for. Nothing is fed or moved.
  std::span<const float> read(std::size_t first, std::span<float> scratch);
  // The same, and marks what lies above the cut. Feeds a residual first if `is_new`: a difference
  // is moved by the caller.
  std::span<const float> read_and_mark(std::size_t first, std::span<float> scratch, float cut,
                                       std::span<std::uint64_t> marks, bool is_new);
  // The same as read() will find them once they are fed or moved: a few elements, into `out`.
  void preview(std::size_t first, std::span<float> out);

  // False: read_and_mark() has met an element of a difference that is not below the limit.
  [[nodiscard]] bool is_usable() const { return is_usable_; }

 private:
  template <typename Changed>
  bool subtract_announced(std::size_t first, std::span<float> out, const Changed& changed);
  void decode(std::size_t tile);

  const TakeOptions& request_;
  bool is_usable_ = true;
  std::size_t tile_ = std::numeric_limits<std::size_t>::max();
  std::vector<TileEntries> decoded_;  // of the tile; without positions: every element
  std::vector<std::size_t> next_;     // in decoded_: the first entry behind the last piece
  TileEntries scratch_;
};

// All of a difference, several tiles at once; nothing is moved.
void read_difference(const TakeOptions& request, Workers& workers, std::span<float> out);

}  // namespace longhaul
