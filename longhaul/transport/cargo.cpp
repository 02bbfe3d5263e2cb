#include "longhaul/transport/cargo.h"

#include <algorithm>
#include <string>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

constexpr std::size_t kChunksOfATransfer = 16;
constexpr int kMostSatOut = 128;  // numbers that say which steps a replica sat out

Error bad_chunk(const std::string& what) {
  return Error{ErrorCode::kCorruptPayload, "chunk: " + what};
}

// Marks [begin, end) as there. False, and nothing marked, where it overlaps what is there.
bool add_piece(std::map<std::size_t, std::size_t>& pieces, std::size_t begin, std::size_t end) {
  auto after = pieces.lower_bound(begin);
  if (after != pieces.end() && after->first < end) return false;
  if (after != pieces.begin()) {
    auto before = std::prev(after);
    if (before->second > begin) return false;
    if (before->second == begin) {
      begin = before->first;
      pieces.erase(before);
    }
  }
  if (after != pieces.end() && after->first == end) {
    end = after->second;
    pieces.erase(after);
  }
  pieces.emplace(begin, end);
  return true;
}

Result<TransferId> id_of(const v1::Chunk& chunk) {
  TransferId id{.step = chunk.step(), .part = chunk.part(), .restarts = chunk.restarts()};
  switch (chunk.cargo()) {
    case v1::CARGO_UPDATE:
      id.cargo = Cargo::kUpdate;
      return id;
    case v1::CARGO_MEAN:
      id.cargo = Cargo::kMean;
      return id;
    case v1::CARGO_SNAPSHOT:
      id.cargo = Cargo::kSnapshot;
      return id;
    case v1::CARGO_PROBE:
      id.cargo = Cargo::kProbe;
      return id;
    default:
      return bad_chunk("unknown cargo " + std::to_string(chunk.cargo()));
  }
}

v1::Cargo name_of(Cargo cargo) {
  switch (cargo) {
    case Cargo::kUpdate:
      return v1::CARGO_UPDATE;
    case Cargo::kMean:
      return v1::CARGO_MEAN;
    case Cargo::kSnapshot:
      return v1::CARGO_SNAPSHOT;
    case Cargo::kProbe:
      break;
  }
  return v1::CARGO_PROBE;
}

}  // namespace

void OutgoingCargo::add(TransferId id, ByteRope bytes, std::optional<v1::Attendance> attendance) {
  transfers_.push_back({.id = id, .bytes = std::move(bytes), .attendance = std::move(attendance)});
}

std::optional<TransferProgress> OutgoingCargo::progress(Cargo cargo) const {
  const auto found =
      std::ranges::find_if(transfers_, [&](const Transfer& one) { return one.id.cargo == cargo; });
  if (found == transfers_.end()) return std::nullopt;
  return TransferProgress{.done = found->sent, .total = found->bytes.size()};
}

std::optional<TransferProgress> IncomingCargo::progress(Cargo cargo) const {
  const auto found =
      std::ranges::find_if(transfers_, [&](const auto& one) { return one.first.cargo == cargo; });
  if (found == transfers_.end()) return std::nullopt;
  return TransferProgress{.done = found->second.received, .total = found->second.bytes.size()};
}

void OutgoingCargo::append_next(Transfer& transfer, std::size_t size, std::string& data) {
  data.reserve(size);
  while (data.size() < size) {
    const ByteView piece = transfer.bytes.pieces()[transfer.piece].subspan(transfer.sent_of_piece);
    const std::size_t count = std::min(piece.size(), size - data.size());
    data.append(reinterpret_cast<const char*>(piece.data()), count);
    transfer.sent_of_piece += count;
    if (count == piece.size()) {
      ++transfer.piece;
      transfer.sent_of_piece = 0;
    }
  }
  transfer.sent += size;
}

Frame OutgoingCargo::next_chunk(std::size_t most_bytes) {
  LONGHAUL_CHECK(!transfers_.empty());
  Transfer& transfer = transfers_.front();
  const std::size_t total = transfer.bytes.size();
  const std::size_t even =
      std::clamp(total / kChunksOfATransfer, kLeastChunkBytes, kMostChunkBytes);
  const std::size_t size = std::min({even, most_bytes, total - transfer.sent});
  Frame frame;
  v1::Chunk& chunk = *frame.mutable_chunk();
  chunk.set_cargo(name_of(transfer.id.cargo));
  chunk.set_step(transfer.id.step);
  chunk.set_part(transfer.id.part);
  chunk.set_restarts(transfer.id.restarts);
  if (transfer.sent == 0 && transfer.attendance)
    *chunk.mutable_attendance() = std::move(*transfer.attendance);
  chunk.set_total(total);
  chunk.set_offset(transfer.sent);
  append_next(transfer, size, *chunk.mutable_data());
  if (transfer.sent == total) transfers_.pop_front();
  return frame;
}

Result<IncomingCargo::Transfer*> IncomingCargo::transfer_of(const TransferId& id,
                                                            const v1::Chunk& chunk, TimePoint now) {
  const auto known = transfers_.find(id);
  if (known != transfers_.end()) {
    if (known->second.bytes.size() != chunk.total())
      return bad_chunk("the size of its transfer changed");
    return &known->second;
  }
  if (transfers_.size() >= limits_.most_transfers)
    return bad_chunk("more than " + std::to_string(limits_.most_transfers) +
                     " transfers at the same time");
  if (chunk.total() > limits_.most_pending_bytes - pending_bytes_)
    return bad_chunk("more than " + std::to_string(limits_.most_pending_bytes) +
                     " bytes in unfinished transfers");
  Transfer& transfer = transfers_[id];
  transfer.bytes.resize(chunk.total());
  pending_bytes_ += chunk.total();
  transfer.first_chunk = chunk.data().size();
  transfer.first_at = now;
  return &transfer;
}

Result<std::optional<Arrival>> IncomingCargo::take(v1::Chunk& chunk, TimePoint now) {
  const Result<TransferId> id = id_of(chunk);
  if (!id.ok()) return id.error();
  const std::size_t size = chunk.data().size();
  if (chunk.total() > limits_.most_bytes)
    return bad_chunk("a transfer of " + std::to_string(chunk.total()) +
                     " bytes, expected at most " + std::to_string(limits_.most_bytes));
  if (chunk.offset() > chunk.total() || size > chunk.total() - chunk.offset() ||
      (size == 0 && chunk.total() > 0))
    return bad_chunk("outside of its transfer");
  // Each piece that is not beside another costs memory of its own.
  if (size < std::min(kLeastChunkBytes, chunk.total() - chunk.offset()))
    return bad_chunk("smaller than " + std::to_string(kLeastChunkBytes) + " bytes");
  if (chunk.attendance().sat_out_size() > kMostSatOut) return bad_chunk("an attendance too long");
  const Result<Transfer*> found = transfer_of(*id, chunk, now);
  if (!found.ok()) return found.error();
  Transfer& transfer = **found;
  if (size > 0 && !add_piece(transfer.pieces, chunk.offset(), chunk.offset() + size))
    return bad_chunk("came twice");
  std::ranges::copy(std::as_bytes(std::span(chunk.data())),
                    transfer.bytes.begin() + static_cast<std::ptrdiff_t>(chunk.offset()));
  if (chunk.has_attendance()) transfer.attendance = std::move(*chunk.mutable_attendance());
  transfer.received += size;
  if (transfer.received < transfer.bytes.size()) return std::optional<Arrival>();
  Arrival arrival{.id = *id,
                  .bytes = std::move(transfer.bytes),
                  .attendance = std::move(transfer.attendance),
                  .timed_bytes = transfer.received - transfer.first_chunk,
                  .duration = now - transfer.first_at};
  transfers_.erase(*id);
  pending_bytes_ -= arrival.bytes.size();
  return std::optional(std::move(arrival));
}

}  // namespace longhaul
