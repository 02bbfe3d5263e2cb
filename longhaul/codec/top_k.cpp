#include "longhaul/codec/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "longhaul/codec/bf16.h"
#include "longhaul/codec/dense.h"
#include "longhaul/codec/sparse_size.h"
#include "longhaul/codec/top_select.h"
#include "longhaul/codec/update_reader.h"

namespace longhaul {
namespace {

using Candidates = TopK::Candidates;

constexpr std::size_t kMarkedPiece = 1024;  // stays in L1 between marking and collecting
// Stays in L2 between moving and marking: long enough to read its several arrays at full speed.
constexpr std::size_t kMovedPiece = 16 * kMarkedPiece;
static_assert(kTileElements % kMovedPiece == 0);
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// Appends what is marked in one piece, which begins at `first` in its tile.
void collect_marked(std::span<const std::uint64_t> marks, std::span<const float> piece,
                    std::size_t first, Candidates& out) {
  const std::size_t before = out.positions.size();
  const std::size_t count = append_marked(marks, out.positions);
  out.values.resize(before + count);
  for (std::size_t i = before; i < before + count; ++i) {
    out.values[i] = piece[out.positions[i]];
    out.positions[i] = static_cast<std::uint16_t>(out.positions[i] + first);
  }
}

// Drops the candidates from `begin` on that the cut does not keep.
void drop_below(Cut& cut, std::size_t begin, Candidates& out) {
  std::size_t kept = begin;
  for (std::size_t i = begin; i < out.values.size(); ++i) {
    out.positions[kept] = out.positions[i];
    out.values[kept] = out.values[i];
    kept += cut.keeps(magnitude_bits(out.values[i]));
  }
  out.positions.resize(kept);
  out.values.resize(kept);
}

// One take() of `elements` elements: the request, and the candidates found so far.
class Selection {
 public:
  Selection(const TakeOptions& request, std::size_t elements, std::size_t k, Workers& workers,
            std::vector<Candidates>& ranges)
      : request_(request), elements_(elements), k_(k), workers_(workers), ranges_(ranges) {
    const std::vector<std::size_t> cuts = split_tiles(tile_count(elements), workers);
    ranges_.resize(cuts.size() - 1);
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      ranges_[i].first_tile = cuts[i];
      ranges_[i].end_tile = cuts[i + 1];
    }
  }

  // Feeds the residual, or moves, and collects candidates, at least k unless fewer are not zero.
  // Returns false if an element is not finite or beyond the limit.
  bool collect() {
    const std::uint32_t guess = sampled_cut();
    // The sample promises far fewer than this; more means that it misled.
    collect_above(guess, 4 * k_ / ranges_.size() + 4 * kMarkedPiece);
    if (!std::ranges::all_of(ranges_, &Candidates::is_usable)) return false;
    collect_enough(guess);
    return true;
  }

  // Finds where to cut the candidates so that exactly min(k, non-zero elements) remain.
  void cut_exactly() {
    const std::size_t total = candidate_count();
    if (total <= k_) return;
    Scratch<std::uint32_t> bits(total);
    auto* next = bits.data();
    for (const Candidates& range : ranges_)
      next = std::ranges::transform(range.values, next, magnitude_bits).out;
    const Cut cut = exact_cut(bits, k_);
    cut_ = cut.bits;
    std::size_t left = cut.ties;
    for (Candidates& range : ranges_) {
      const auto ties = std::ranges::count_if(
          range.values, [&](float v) { return magnitude_bits(v) == cut.bits; });
      range.ties = std::min(static_cast<std::size_t>(ties), left);
      left -= range.ties;
    }
  }

  ByteBuffer encode(ValueFormat format) {
    std::vector<ByteBuffer> parts(ranges_.size());
    const double share = 1.1 / static_cast<double>(parts.size());
    const auto room =
        static_cast<std::size_t>(share * expected_sparse_bytes(format, elements_, k_));
    workers_.run(parts.size(), [&](std::size_t i) {
      ByteWriter out;
      out.reserve(room);
      encode_range(format, ranges_[i], out);
      parts[i] = std::move(out).release();
    });
    return seal_payload({.kind = PayloadKind::kSparse, .format = format, .elements = elements_},
                        parts);
  }

 private:
  // Where somewhat more than k of the elements lie above: from whole cache lines spread evenly over
  // the update.
  std::uint32_t sampled_cut() {
    constexpr std::size_t kLine = 16;
    const std::size_t all_lines = elements_ / kLine;
    const std::size_t lines = std::min<std::size_t>(2048, all_lines);
    std::vector<float> values(lines * kLine);
    workers_.run(ranges_.size(), [&](std::size_t range) {
      UpdateReader reader(request_);
      const Candidates& own = ranges_[range];
      for (std::size_t i = 0; i < lines; ++i) {
        // Not exactly periodic, or it would meet the same column of every matrix row.
        const std::size_t line =
            i * all_lines / lines + (i * 0x9E3779B1U >> 7) % (all_lines / lines);
        const std::size_t tile = kLine * line / kTileElements;
        if (tile < own.first_tile || tile >= own.end_tile) continue;
        reader.preview(kLine * line, std::span(values).subspan(i * kLine, kLine));
      }
    });
    std::vector<std::uint32_t> sample(values.size());
    std::ranges::transform(values, sample.begin(), magnitude_bits);
    const double share = static_cast<double>(k_) / static_cast<double>(elements_);
    const double expected = share * static_cast<double>(sample.size());
    const double rank = expected + 5.0 * std::sqrt(expected) + 8.0;
    if (rank >= static_cast<double>(sample.size())) return 1;
    return std::max(1U, kth_largest(sample, static_cast<std::size_t>(rank)));
  }

  void collect_enough(std::uint32_t guess) {
    const bool enough = candidate_count() >= k_ || guess == 1;
    if (enough && std::ranges::none_of(ranges_, &Candidates::overflowed)) return;
    const auto count = [&](float threshold) { return count_at_least(threshold); };
    const std::uint32_t cut = find_cut(count, k_, k_ / 4, guess);
    if (count(std::bit_cast<float>(cut)) <= k_ + k_ / 4) return collect_above(cut, kNoLimit);
    collect_with_ties({.bits = cut, .ties = k_ - count(std::bit_cast<float>(cut + 1))});
  }

  [[nodiscard]] std::size_t candidate_count() const {
    return std::accumulate(
        ranges_.begin(), ranges_.end(), std::size_t{0},
        [](std::size_t sum, const Candidates& range) { return sum + range.positions.size(); });
  }

  [[nodiscard]] std::size_t count_at_least(float threshold) {
    std::vector<std::size_t> counts(ranges_.size());
    workers_.run(ranges_.size(), [&](std::size_t i) {
      UpdateReader reader(request_);
      std::array<float, kMarkedPiece> scratch;
      const std::size_t end = std::min(elements_, tile_begin(ranges_[i].end_tile));
      for (std::size_t at = tile_begin(ranges_[i].first_tile); at < end; at += kMarkedPiece) {
        const std::size_t here = std::min(kMarkedPiece, end - at);
        counts[i] +=
            kernels::count_at_least(reader.read(at, std::span(scratch).first(here)), threshold);
      }
    });
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  }

  void collect_above(std::uint32_t cut, std::size_t limit) {
    workers_.run(ranges_.size(), [&](std::size_t i) {
      Candidates& out = ranges_[i];
      for_each_piece(cut, out,
                     [&](std::span<const std::uint64_t> marks, std::span<const float> piece,
                         std::size_t first) {
                       out.overflowed |= out.positions.size() > limit;
                       if (!out.overflowed) collect_marked(marks, piece, first, out);
                     });
    });
    is_new_ = false;
  }

  // Where so many magnitudes are equal that not all of them can be candidates: in order, as the
  // first ones win.
  void collect_with_ties(Cut cut) {
    for (Candidates& out : ranges_) {
      for_each_piece(cut.bits, out,
                     [&](std::span<const std::uint64_t> marks, std::span<const float> piece,
                         std::size_t first) {
                       const std::size_t before = out.positions.size();
                       collect_marked(marks, piece, first, out);
                       drop_below(cut, before, out);
                     });
    }
  }

  // Reads and marks the pieces of a range in order, and calls visit(marks, piece, where it begins
  // in its tile).
  template <typename Visit>
  void for_each_piece(std::uint32_t cut, Candidates& out, const Visit& visit) const {
    out.clear();
    UpdateReader reader(request_);
    std::array<std::uint64_t, kernels::mark_words(kMarkedPiece)> storage;
    std::array<float, kMarkedPiece> scratch;
    for (std::size_t tile = out.first_tile; tile < out.end_tile; ++tile) {
      const std::size_t tile_end = tile_begin(tile) + tile_size(tile, elements_);
      for (std::size_t first = tile_begin(tile); first < tile_end; first += kMarkedPiece) {
        const std::size_t here = std::min(kMarkedPiece, tile_end - first);
        const std::span marks = std::span(storage).first(kernels::mark_words(here));
        if (is_new_ && request_.is_difference() && request_.move && first % kMovedPiece == 0)
          request_.move(first, std::min(kMovedPiece, elements_ - first));
        const std::span piece = reader.read_and_mark(first, std::span(scratch).first(here),
                                                     std::bit_cast<float>(cut), marks, is_new_);
        visit(marks, piece, first - tile_begin(tile));
      }
      out.tile_ends.push_back(out.positions.size());
    }
    out.is_usable = reader.is_usable();
  }

  // Empty for a difference.
  [[nodiscard]] std::span<float> residual_of(std::size_t tile) const {
    if (request_.is_difference()) return {};
    return request_.residual.subspan(tile_begin(tile), tile_size(tile, elements_));
  }

  void encode_range(ValueFormat format, const Candidates& range, ByteWriter& out) {
    TileEntries entries;
    std::size_t begin = 0;
    Cut cut{.bits = cut_, .ties = range.ties};
    for (std::size_t tile = range.first_tile; tile < range.end_tile; ++tile) {
      const std::size_t end = range.tile_ends[tile - range.first_tile];
      const std::span<float> part = residual_of(tile);
      entries.resize(end - begin);
      std::size_t kept = 0;
      for (std::size_t i = begin; i < end; ++i) {
        entries.positions[kept] = range.positions[i];
        entries.values[kept] = range.values[i];
        kept += cut.keeps(magnitude_bits(range.values[i]));
        if (part.empty()) continue;
        // The residual was last touched a whole update ago: fetch its lines while positions are
        // coded.
        __builtin_prefetch(&part[range.positions[i]], 1);
      }
      entries.resize(kept);
      begin = end;
      write_positions(entries.positions, out);
      take_values(format, entries, part, out);
    }
  }

  const TakeOptions& request_;
  std::size_t elements_;
  std::size_t k_;
  bool is_new_ = true;  // not fed or moved yet
  std::uint32_t cut_ =
      0;  // candidates above it are kept, and as many at it as their range may keep
  Workers& workers_;
  std::vector<Candidates>& ranges_;
};

ByteBuffer payload_of(Selection selection, ValueFormat format) {
  if (!selection.collect()) return {};
  selection.cut_exactly();
  return selection.encode(format);
}

}  // namespace

void TopK::Candidates::clear() {
  tile_ends.clear();
  positions.clear();
  values.clear();
  ties = 0;
  overflowed = false;
  is_usable = true;
}

ByteBuffer TopK::take(const TakeOptions& request) {
  const std::size_t elements = request.residual.size();
  const std::size_t k = kept_count(elements, request.keep_ratio);
  if (dense_is_smaller(format_, elements, k)) return take_dense(request, format_, workers_);
  return payload_of({request, elements, k, workers_, scratch_}, format_);
}

ByteBuffer TopK::take_difference(const TakeOptions& request, Workers& workers) {
  const std::size_t elements = request.position.size();
  const std::size_t k = kept_count(elements, request.keep_ratio);
  if (dense_is_smaller(format_, elements, k)) return Codec::take_difference(request, workers);
  return payload_of({request, elements, k, workers_, scratch_}, format_);
}

double TopK::expected_bytes(std::size_t elements, double keep_ratio) const {
  const std::size_t k = kept_count(elements, keep_ratio);
  if (dense_is_smaller(format_, elements, k))
    return static_cast<double>(dense_bytes(format_, elements));
  return expected_sparse_bytes(format_, elements, k);
}

}  // namespace longhaul
