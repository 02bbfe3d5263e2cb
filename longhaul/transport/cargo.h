// Bulk data in pieces: transfers are cut into chunks that travel on any lane, and put together
// again at the other end.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/byte_rope.h"
#include "longhaul/base/bytes.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// The kinds of bulk data.
enum class Cargo : std::uint8_t { kUpdate, kMean, kSnapshot, kProbe };

// Names a transfer: its cargo, its round, its life.
struct TransferId {
  Cargo cargo = Cargo::kUpdate;
  std::uint64_t step = 0;  // of the round; 0 for snapshots, any for probes
  std::uint32_t part = 0;
  std::uint32_t restarts = 0;  // of the replica on this connection
  auto operator<=>(const TransferId&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

// Small transfers are cut too, so that the receiver sees how fast they pass; only the last chunk of
// a transfer is smaller than the least.
inline constexpr std::size_t kLeastChunkBytes = 1024;
inline constexpr std::size_t kMostChunkBytes = std::size_t{256} * 1024;

// How far a transfer has come, in bytes.
struct TransferProgress {
  std::size_t done = 0;
  std::size_t total = 0;
};

// Transfers on their way out, the oldest first. Pure: no stream, no thread.
class OutgoingCargo {
 public:
  // An empty one is a chunk without data.
  void add(TransferId id, ByteRope bytes, std::optional<v1::Attendance> attendance = {});
  [[nodiscard]] bool is_empty() const { return transfers_.empty(); }
  [[nodiscard]] std::size_t count() const { return transfers_.size(); }
  // Progress of the oldest of that kind; nothing, if there is none.
  [[nodiscard]] std::optional<TransferProgress> progress(Cargo cargo) const;
  // The next piece, of so many bytes at most. Preconditions: not empty; at least kLeastChunkBytes.
  Frame next_chunk(std::size_t most_bytes = kMostChunkBytes);
  void clear() { transfers_.clear(); }

 private:
  struct Transfer {
    TransferId id;
    ByteRope bytes;
    std::optional<v1::Attendance> attendance;
    std::size_t sent = 0;
    std::size_t piece = 0;          // of the rope, that is sent next
    std::size_t sent_of_piece = 0;  // in bytes
  };
  static void append_next(Transfer& transfer, std::size_t size, std::string& data);

  std::deque<Transfer> transfers_;
};

// A transfer that is complete.
struct Arrival {
  TransferId id;
  ByteBuffer bytes;
  v1::Attendance attendance;  // of an update; empty: none was told
  // Of the bytes behind the first chunk, whose own passage nobody saw; both 0 for one chunk.
  std::size_t timed_bytes = 0;
  Seconds duration{};
};

// Bounds of what a peer may send.
struct CargoOptions {
  std::size_t most_bytes = 0;      // of a transfer
  std::size_t most_transfers = 0;  // that may be incomplete at once
  std::size_t most_pending_bytes = std::numeric_limits<std::size_t>::max();  // of those, in all
};

// Transfers on their way in. Everything that a peer says is doubted: sizes, places, kinds.
class IncomingCargo {
 public:
  explicit IncomingCargo(const CargoOptions& limits) : limits_(limits) {}

  // The transfer that this chunk completes, if it does.
  Result<std::optional<Arrival>> take(v1::Chunk& chunk, TimePoint now);
  // Progress of the first of that kind; nothing, if there is none.
  [[nodiscard]] std::optional<TransferProgress> progress(Cargo cargo) const;
  void clear() {
    transfers_.clear();
    pending_bytes_ = 0;
  }

 private:
  struct Transfer {
    ByteBuffer bytes;
    v1::Attendance attendance;
    std::map<std::size_t, std::size_t> pieces;  // begin → end, joined where they touch
    std::size_t received = 0;
    std::size_t first_chunk = 0;
    TimePoint first_at;
  };
  Result<Transfer*> transfer_of(const TransferId& id, const v1::Chunk& chunk, TimePoint now);

  CargoOptions limits_;
  std::map<TransferId, Transfer> transfers_;
  std::size_t pending_bytes_ = 0;  // of the transfers
};

}  // namespace longhaul
