#include "trainer/turn.h"

#include <bit>
#include <cmath>

namespace longhaul::trainer {
namespace {

constexpr std::uint32_t kMagic = 0x4E54484C;  // "LHTN"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kTurnBytes = 12 + 9 * 8;

void put(ByteWriter& out, Seconds time) { out.u64(std::bit_cast<std::uint64_t>(time.count())); }

bool take(ByteReader& in, Seconds& time) {
  time = Seconds(std::bit_cast<double>(in.u64()));
  return std::isfinite(time.count()) && time.count() >= 0;
}

}  // namespace

ByteBuffer to_bytes(const Turn& turn) {
  ByteWriter out;
  out.u32(kMagic);
  out.u32(kVersion);
  out.u32(turn.round.part);
  for (const std::uint64_t number :
       {turn.round.step, turn.elements, turn.bytes, turn.kept, turn.payload_bytes})
    out.u64(number);
  for (const Seconds time : {turn.clock, turn.computing, turn.header_time, turn.payload_time})
    put(out, time);
  return std::move(out).release();
}

Result<Turn> turn_from_bytes(ByteView bytes) {
  if (bytes.size() != kTurnBytes) return corrupt_payload("turn: of another size");
  ByteReader in(bytes);
  if (in.u32() != kMagic) return corrupt_payload("turn: bad magic");
  if (const std::uint32_t version = in.u32(); version != kVersion)
    return Error{ErrorCode::kMismatch, "turn: version " + std::to_string(version) + ", expected " +
                                           std::to_string(kVersion)};
  Turn turn;
  turn.round.part = in.u32();
  for (std::uint64_t* number :
       {&turn.round.step, &turn.elements, &turn.bytes, &turn.kept, &turn.payload_bytes})
    *number = in.u64();
  for (Seconds* time : {&turn.clock, &turn.computing, &turn.header_time, &turn.payload_time})
    if (!take(in, *time)) return corrupt_payload("turn: a time that cannot be");
  return turn;
}

}  // namespace longhaul::trainer
