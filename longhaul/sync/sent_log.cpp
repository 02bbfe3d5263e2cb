#include "longhaul/sync/sent_log.h"

#include <limits>

#include "longhaul/base/file.h"
#include "longhaul/codec/digest.h"

namespace longhaul {
namespace {

constexpr std::uint32_t kSentMagic = 0x5553484C;         // "LHSU"
constexpr std::size_t kSentHeaderBytes = 4 + 8 + 4 + 8;  // magic, step, part, bytes
constexpr std::size_t kSentChecksumBytes = 8;            // of all before it in the record
constexpr std::size_t kMostLogBytes = std::numeric_limits<std::size_t>::max() / 2;

ByteBuffer record_of(RoundId round, ByteView payload) {
  ByteWriter out;
  out.u32(kSentMagic);
  out.u64(round.step);
  out.u32(round.part);
  out.u64(payload.size());
  out.bytes(payload);
  ByteBuffer content = std::move(out).release();
  ByteWriter sealed;
  sealed.bytes(content);
  sealed.u64(digest_of(content));
  return std::move(sealed).release();
}

}  // namespace

SentLog::SentLog(std::filesystem::path file, const SentUpdates& known, Exchange& exchange)
    : file_(std::move(file)), exchange_(exchange) {
  begin(known);
}

void SentLog::begin(const SentUpdates& known) {
  ByteWriter all;
  for (const auto& [round, payload] : known) {
    all.bytes(record_of(round, payload));
    last_ = round;
  }
  out_.close();
  status_ = write_file_atomically(file_, std::move(all).release());
  if (!status_.ok()) return;
  out_.open(file_, std::ios::binary | std::ios::app);
  if (!out_) status_ = Error{ErrorCode::kIo, file_.string() + ": cannot be written"};
}

Result<SentUpdates> SentLog::read(const std::filesystem::path& file) {
  const Result<ByteBuffer> bytes = read_file(file, kMostLogBytes);
  if (!bytes.ok() && bytes.error().code == ErrorCode::kNotFound) return SentUpdates{};
  if (!bytes.ok()) return bytes.error();
  SentUpdates sent;
  for (ByteView rest(*bytes); rest.size() >= kSentHeaderBytes + kSentChecksumBytes;) {
    ByteReader in(rest);
    const bool is_record = in.u32() == kSentMagic;
    const RoundId round{.step = in.u64(), .part = in.u32()};
    const std::uint64_t size = in.u64();
    if (!is_record || size > in.remaining() - kSentChecksumBytes) break;
    const ByteView payload = in.bytes(size);
    if (in.u64() != digest_of(rest.first(kSentHeaderBytes + size))) break;
    sent.emplace(round, ByteBuffer(payload.begin(), payload.end()));
    rest = rest.subspan(kSentHeaderBytes + size + kSentChecksumBytes);
  }
  return sent;
}

// A replica that resumes submits again what is in the file already.
void SentLog::submit(Update update) {
  if (status_.ok() && (!last_ || update.round > *last_)) {
    const ByteBuffer record = record_of(update.round, *update.payload.bytes());
    out_.write(reinterpret_cast<const char*>(record.data()),
               static_cast<std::streamsize>(record.size()));
    out_.flush();
    if (!out_) status_ = Error{ErrorCode::kIo, file_.string() + ": cannot be written"};
    last_ = update.round;
  }
  exchange_.submit(std::move(update));
}

void SentLog::forget_before(std::uint64_t step) {
  if (!status_.ok()) return;
  Result<SentUpdates> sent = read(file_);
  if (!sent.ok()) {
    status_ = sent.error();
    return;
  }
  sent->erase(sent->begin(), sent->lower_bound({.step = step}));
  begin(*sent);
}

}  // namespace longhaul
