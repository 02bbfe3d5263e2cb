// Logs of rounds: records and damage fill a file without gap or overlap, whatever is in it, and
// rounds that were read are written so that they are read again as the same.
#include "longhaul/hub/round_log.h"

namespace {

using namespace longhaul;

constexpr std::uint64_t kRun = 1;

ByteView bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string record_of(const JournalRound& round, const std::string& body) {
  return record_header(kRun, round, body) + body;
}

void check_log(ByteView file) {
  const LogContent log = read_log(file, kRun);
  std::size_t damaged = 0;
  std::size_t end = 0;
  for (const LogDamage& damage : log.damage) {
    LONGHAUL_CHECK(damage.bytes > 0);
    LONGHAUL_CHECK_LE(end, damage.begin);
    end = damage.begin + damage.bytes;
    damaged += damage.bytes;
    LONGHAUL_CHECK(!damage.is_torn || end == file.size());
  }
  LONGHAUL_CHECK_LE(damaged + log.rounds.size() * kRecordHeaderBytes, file.size());
  for (const JournalRound& round : log.rounds) {
    const std::string body = record_body(round);
    const LogContent again = read_log(bytes_in(log_header(kRun, 0) + record_of(round, body)), kRun);
    LONGHAUL_CHECK(again.damage.empty());
    LONGHAUL_CHECK_EQ(again.rounds.size(), 1U);
    LONGHAUL_CHECK(record_body(again.rounds[0]) == body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = std::as_bytes(std::span(data, size));
  check_log(input);
  // The same as the body of a record with the right checksums, which it has no way to find. What is
  // left of it after another record must not cost that one.
  const std::string body(reinterpret_cast<const char*>(data), size);
  const JournalRound named{.id = {.step = size > 0 ? std::uint64_t{data[size - 1]} : 0}};
  const std::string record = record_of(named, body);
  check_log(bytes_in(log_header(kRun, 0) + record + body + record));
  return 0;
}
