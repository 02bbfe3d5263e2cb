// Writing payloads tile by tile, several tiles at once: what codecs share.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/workers.h"
#include "longhaul/codec/payload.h"
#include "longhaul/codec/tile.h"

namespace longhaul {

// Cuts tiles into ranges of consecutive ones, each for one task: range i goes from cuts[i] to
// cuts[i + 1]. A few per thread, so that a slow one does not hold up the others; one for a single
// thread.
std::vector<std::size_t> split_tiles(std::size_t tiles, const Workers& workers);

// Calls work(first tile, end) for each of these ranges, several at once.
void run_tile_ranges(std::size_t tiles, Workers& workers,
                     const std::function<void(std::size_t first, std::size_t end)>& work);

// Calls work(first element, count) for every tile, several at once.
void run_tiles(std::size_t elements, Workers& workers,
               const std::function<void(std::size_t first, std::size_t count)>& work);

// Calls write(tile, out, scratch) for every tile, and seals what was written in the order of the
// tiles.
using WriteTile = std::function<void(std::size_t tile, ByteWriter& out, TileEntries& scratch)>;
ByteBuffer write_tiles(const PayloadHeader& header, ByteBuffer prefix, Workers& workers,
                       const WriteTile& write);

// Writes the values of `entries` and takes what they decode to out of the residual of the tile, if
// there is one.
void take_values(ValueFormat format, TileEntries& entries, std::span<float> residual,
                 ByteWriter& out);

}  // namespace longhaul
