#include "longhaul/hub/round_log.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "longhaul/base/check.h"
#include "longhaul/base/state.h"
#include "longhaul/codec/digest.h"
#include "longhaul/exchange/protocol.h"
#include "proto/journal.pb.h"

namespace longhaul {
namespace {

constexpr std::uint32_t kLogMagic = 0x4C4A484C;     // "LHJL"
constexpr std::uint32_t kRecordMagic = 0x524A484C;  // "LHJR"
constexpr std::size_t kChecksumBytes = 8;

using Magic = std::array<std::byte, sizeof kRecordMagic>;

Magic record_magic() {
  Magic magic{};
  store_le(magic.data(), kRecordMagic);
  return magic;
}

// The bytes that were written, and their checksum.
std::string sealed(ByteWriter header) {
  ByteBuffer bytes = std::move(header).release();
  const std::uint64_t checksum = digest_of(bytes);
  ByteWriter out;
  out.bytes(bytes);
  out.u64(checksum);
  bytes = std::move(out).release();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Without its checksum, if that is right.
std::optional<ByteReader> opened(ByteView file, std::size_t bytes) {
  if (file.size() < bytes) return std::nullopt;
  const ByteView content = file.first(bytes - kChecksumBytes);
  if (digest_of(content) != load_le<std::uint64_t>(file.data() + content.size()))
    return std::nullopt;
  return ByteReader(content);
}

std::optional<std::uint64_t> first_in(ByteView file, std::uint64_t run) {
  std::optional<ByteReader> in = opened(file, kLogHeaderBytes);
  if (!in || in->u32() != kLogMagic || in->u32() != kFileFormat || in->u64() != run)
    return std::nullopt;
  return in->u64();
}

struct RecordHeader {
  RoundId round;
  std::uint64_t number = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t message_checksum = 0;
  std::uint64_t payload_bytes = 0;

  // Are the bytes behind the header all there?
  [[nodiscard]] bool fits(std::size_t bytes) const {
    return message_bytes <= bytes && payload_bytes <= bytes - message_bytes;
  }
};

std::optional<RecordHeader> record_in(ByteView rest, std::uint64_t run) {
  if (rest.size() < kRecordHeaderBytes || load_le<std::uint32_t>(rest.data()) != kRecordMagic)
    return std::nullopt;
  std::optional<ByteReader> in = opened(rest, kRecordHeaderBytes);
  if (!in) return std::nullopt;
  (void)in->u32();
  RecordHeader header;
  header.round.part = in->u32();
  header.round.step = in->u64();
  header.number = in->u64();
  if (in->u64() != run) return std::nullopt;
  header.message_bytes = in->u64();
  header.message_checksum = in->u64();
  header.payload_bytes = in->u64();
  return header;
}

// The digest in its header is the checksum of a payload: nothing else is hashed.
std::optional<CheckedPayload> payload_in(ByteView bytes, std::uint64_t elements,
                                         std::uint64_t digest) {
  Result<CheckedPayload> payload = CheckedPayload::check({bytes.begin(), bytes.end()}, elements);
  if (!payload.ok() || payload->digest() != digest) return std::nullopt;
  return std::move(payload).value();
}

// Without its payloads.
std::optional<JournalRound> round_in(const v1::JournalRound& message, const RecordHeader& header) {
  const int contributors = message.contributors_size();
  if (message.digests_size() != contributors || message.attendance_size() != contributors)
    return std::nullopt;
  if (message.step() != header.round.step || message.part() != header.round.part)
    return std::nullopt;
  JournalRound round{.id = header.round,
                     .from = {.step = message.from(), .part = message.from_part()},
                     .number = header.number,
                     .elements = message.elements()};
  for (int i = 0; i < contributors; ++i) {
    Result<Attendance> attendance = attendance_from(message.attendance(i), round.id.step);
    if (!attendance.ok()) return std::nullopt;
    round.contributors.push_back({.slot = message.contributors(i),
                                  .digest = message.digests(i),
                                  .attendance = std::move(attendance).value()});
  }
  if (message.has_next_plan()) {
    const Result<Plan> plan = plan_from(message.next_plan());
    if (!plan.ok()) return std::nullopt;
    round.next_plan = *plan;
  }
  return round;
}

// `rest` begins with that header.
std::optional<JournalRound> round_in(ByteView rest, const RecordHeader& header) {
  if (!header.fits(rest.size() - kRecordHeaderBytes) ||
      header.message_bytes > std::numeric_limits<int>::max())
    return std::nullopt;
  const ByteView bytes = rest.subspan(kRecordHeaderBytes, header.message_bytes);
  v1::JournalRound message;
  if (digest_of(bytes) != header.message_checksum ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      message.mean_bytes() > header.payload_bytes)
    return std::nullopt;
  std::optional<JournalRound> round = round_in(message, header);
  if (!round) return std::nullopt;
  const ByteView payloads =
      rest.subspan(kRecordHeaderBytes + header.message_bytes, header.payload_bytes);
  std::optional<CheckedPayload> mean =
      payload_in(payloads.first(message.mean_bytes()), round->elements, message.mean_digest());
  if (!mean) return std::nullopt;
  round->mean = std::move(*mean);
  if (message.mean_bytes() == header.payload_bytes) return round;
  std::optional<CheckedPayload> whole =
      payload_in(payloads.subspan(message.mean_bytes()), round->elements, message.whole_digest());
  if (!whole) return std::nullopt;
  round->whole = std::move(*whole);
  return round;
}

// The next place from `at` on where a record may begin; the end, if there is none.
std::size_t next_magic(ByteView file, std::size_t at) {
  const Magic magic = record_magic();
  const ByteView rest = file.subspan(std::min(at, file.size()));
  const auto found = std::search(rest.begin(), rest.end(), magic.begin(), magic.end());
  return file.size() - static_cast<std::size_t>(rest.end() - found);
}

// The beginning of a record, and not all of it.
bool is_cut_short(ByteView rest, std::uint64_t run) {
  const Magic magic = record_magic();
  const std::size_t told = std::min(rest.size(), magic.size());
  if (!std::ranges::equal(rest.first(told), ByteView(magic).first(told))) return false;
  if (rest.size() < kRecordHeaderBytes) return true;
  const std::optional<RecordHeader> header = record_in(rest, run);
  return header && !header->fits(rest.size() - kRecordHeaderBytes);
}

}  // namespace

std::string log_header(std::uint64_t run, std::uint64_t first) {
  ByteWriter header;
  header.u32(kLogMagic);
  header.u32(kFileFormat);
  header.u64(run);
  header.u64(first);
  return sealed(std::move(header));
}

std::string record_header(std::uint64_t run, const JournalRound& round, const std::string& message,
                          std::size_t payload_bytes) {
  ByteWriter header;
  header.u32(kRecordMagic);
  header.u32(round.id.part);
  header.u64(round.id.step);
  header.u64(round.number);
  header.u64(run);
  header.u64(message.size());
  header.u64(digest_of(std::as_bytes(std::span(message))));
  header.u64(payload_bytes);
  return sealed(std::move(header));
}

std::string record_start(std::uint64_t run, const JournalRound& round) {
  v1::JournalRound message;
  message.set_step(round.id.step);
  message.set_part(round.id.part);
  message.set_from(round.from.step);
  message.set_from_part(round.from.part);
  message.set_elements(round.elements);
  for (const Contributor& one : round.contributors) {
    message.add_contributors(static_cast<std::uint32_t>(one.slot));
    message.add_digests(one.digest);
    *message.add_attendance() = to_message(one.attendance);
  }
  if (round.next_plan) *message.mutable_next_plan() = to_message(*round.next_plan);
  message.set_mean_bytes(round.mean.size());
  message.set_mean_digest(round.mean.digest());
  message.set_whole_digest(round.whole.digest());
  std::string bytes;
  LONGHAUL_CHECK(message.SerializeToString(&bytes));
  return record_header(run, round, bytes, round.mean.size() + round.whole.size()) + bytes;
}

bool LogFile::is_damaged() const {
  return !first || !std::ranges::all_of(damage, &LogDamage::is_torn);
}

bool LogFile::hides_rounds() const {
  if (!first && bytes < kLogHeaderBytes) return true;
  if (damage.empty() || damage.back().begin + damage.back().bytes < bytes) return false;
  const bool is_header = damage.back().begin == 0 && bytes == kLogHeaderBytes;
  return !damage.back().is_torn && !is_header;
}

LogFile read_log(ByteView file, std::uint64_t run) {
  LogFile log{.bytes = file.size(), .first = first_in(file, run)};
  std::size_t at = log.first ? kLogHeaderBytes : 0;
  LogDamage damage{.begin = at};  // what could not be read since the last whole record
  const auto note_until = [&](std::size_t end) {
    damage.bytes = end - damage.begin;
    if (damage.bytes > 0) log.damage.push_back(damage);
  };
  while (at < file.size()) {
    const ByteView rest = file.subspan(at);
    const std::optional<RecordHeader> header = record_in(rest, run);
    std::optional<JournalRound> round = header ? round_in(rest, *header) : std::nullopt;
    if (round) {
      note_until(at);
      log.end = std::max(log.end, round->number + 1);
      log.rounds.push_back(std::move(*round));
      at += kRecordHeaderBytes + header->message_bytes + header->payload_bytes;
      damage = {.begin = at};
      continue;
    }
    if (header) {
      if (!damage.round) damage.round = header->round;
      damage.number = header->number;
    }
    at = next_magic(file, at + 1);
  }
  damage.is_torn = log.first && is_cut_short(file.subspan(damage.begin), run);
  note_until(file.size());
  return log;
}

}  // namespace longhaul
