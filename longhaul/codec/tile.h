// A tile is kTileElements consecutive elements of an update. Payloads are sequences of tiles, so
// that the hub can sum many of them range by range, in cache and in parallel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "longhaul/base/scratch.h"

namespace longhaul {

inline constexpr std::size_t kTileElements = 65536;  // a position in a tile fits 16 bits

constexpr std::size_t tile_count(std::size_t elements) {
  return elements / kTileElements + (elements % kTileElements != 0);
}

constexpr std::size_t tile_begin(std::size_t tile) { return tile * kTileElements; }

constexpr std::size_t tile_size(std::size_t tile, std::size_t elements) {
  return std::min(kTileElements, elements - tile_begin(tile));
}

// Some elements of one tile: ascending positions and their values. Reused from tile to tile.
struct TileEntries {
  Scratch<std::uint16_t> positions;
  Scratch<float> values;

  void resize(std::size_t count) {
    positions.resize(count);
    values.resize(count);
  }
  // Fills `values` with what stands at `positions` in a tile.
  void gather(std::span<const float> tile) {
    values.resize(positions.size());
    std::ranges::transform(positions, values.begin(), [&](std::uint16_t i) { return tile[i]; });
  }
};

}  // namespace longhaul
