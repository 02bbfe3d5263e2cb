// Logs of rounds: records and damage fill a file without gap or overlap, whatever is in it, and
// rounds that were read are written so that they are read again as the same.
#include "longhaul/hub/round_log.h"

#include <vector>

#include "longhaul/base/check.h"
#include "longhaul/codec/codec.h"

namespace {

using namespace longhaul;

constexpr std::uint64_t kRun = 77;  // as in tests/hub/golden, whose logs are seeds

ByteView bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string record_of(const JournalRound& round) {
  return record_start(kRun, round) + text_of(*round.mean.bytes()) + text_of(*round.whole.bytes());
}

// The mean of the second round in the golden log.
std::string golden_payload() {
  Workers workers(1);
  std::vector<float> ones(4, 1.0F);
  return text_of(
      make_codec(parse_codec("dense/fp32").value(), {}, workers)->take({.residual = ones}));
}

void check_log(ByteView file) {
  const LogFile log = read_log(file, kRun);
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
    const std::string record = record_of(round);
    const LogFile again = read_log(bytes_in(log_header(kRun, 0) + record), kRun);
    LONGHAUL_CHECK(again.damage.empty());
    LONGHAUL_CHECK_EQ(again.rounds.size(), 1U);
    LONGHAUL_CHECK(record_of(again.rounds[0]) == record);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = std::as_bytes(std::span(data, size));
  check_log(input);
  if (size < 2) return 0;
  // The same as the message of a record with the right checksums, which it has no way to find; its
  // last bytes name the round. What is left of it after another record must not cost that one.
  static const std::string kPayload = golden_payload();
  const std::string message = text_of(input.first(size - 2));
  const JournalRound named{.id = {.step = data[size - 2], .part = data[size - 1]}};
  const std::string record =
      record_header(kRun, named, message, kPayload.size()) + message + kPayload;
  check_log(bytes_in(log_header(kRun, 0) + record + message + record));
  return 0;
}
