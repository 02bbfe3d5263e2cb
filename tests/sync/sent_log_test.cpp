#include "longhaul/sync/sent_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "longhaul/base/file.h"
#include "longhaul/codec/codec.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

// Takes everything, and has no means.
class Outbox final : public Exchange {
 public:
  void submit(Update update) override { sent.push_back(std::move(update)); }
  Result<Mean> collect(RoundId /*round*/, Deadline /*deadline*/) override {
    return Error{ErrorCode::kDeadline, "none"};
  }
  std::vector<Update> sent;
};

class SentLogTest : public ::testing::Test {
 protected:
  ~SentLogTest() override { std::filesystem::remove(file_); }

  static CheckedPayload payload_of(std::size_t elements) {
    if (elements == 0) return {};
    Workers workers(1);
    std::vector<float> values(elements, 7.0F);
    return CheckedPayload::of_sealed(
        make_codec(parse_codec("dense/fp32").value(), {}, workers)->take({.residual = values}),
        elements);
  }
  static Update update_of(std::uint64_t step, std::uint32_t part, std::size_t elements) {
    return {.round = {.step = step, .part = part}, .payload = payload_of(elements)};
  }
  // Three records, of 10, 0 and 9 elements.
  void write_three() {
    SentLog log(file_, {}, outbox_);
    log.submit(update_of(3, 0, 10));
    log.submit(update_of(3, 1, 0));
    log.submit(update_of(5, 0, 9));
    EXPECT_TRUE(log.status().ok());
  }
  [[nodiscard]] SentUpdates read() const { return SentLog::read(file_).value(); }

  Outbox outbox_;
  std::filesystem::path file_ = std::filesystem::path(::testing::TempDir()) /
                                ("longhaul_sent_log_" + std::to_string(::getpid()));
};

TEST_F(SentLogTest, HasWhatWasSubmittedAndPassesItOn) {
  write_three();
  const SentUpdates sent = read();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent.at({.step = 3}).size(), kPayloadHeaderBytes + 40);
  EXPECT_TRUE(sent.at({.step = 3, .part = 1}).empty());
  EXPECT_TRUE(std::ranges::equal(sent.at({.step = 5}), *payload_of(9).bytes()));
  EXPECT_EQ(outbox_.sent.size(), 3U);
}

TEST_F(SentLogTest, IsEmptyWithoutAFile) { EXPECT_TRUE(read().empty()); }

TEST_F(SentLogTest, GoesOnAndKeepsWhatIsSubmittedAgainOnce) {
  write_three();
  {
    SentLog log(file_, read(), outbox_);
    log.submit(update_of(5, 0, 9));
    log.submit(update_of(6, 0, 1));
  }
  EXPECT_EQ(read().size(), 4U);
  EXPECT_EQ(outbox_.sent.size(), 5U);
}

TEST_F(SentLogTest, ForgetsWhatACheckpointHas) {
  write_three();
  SentLog log(file_, read(), outbox_);
  log.forget_before(5);
  log.submit(update_of(7, 0, 2));
  EXPECT_TRUE(log.status().ok());
  const SentUpdates sent = read();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent.begin()->first, (RoundId{.step = 5}));
}

// Every cut and every flipped bit: what is read is the beginning of what was written.
TEST_F(SentLogTest, EndsBeforeTheFirstRecordThatIsDamaged) {
  write_three();
  const ByteBuffer whole = read_file(file_, 1 << 20).value();
  const SentUpdates written = read();
  const auto expect_beginning = [&](ByteBuffer bytes, std::size_t most) {
    ASSERT_TRUE(write_file_atomically(file_, bytes).ok());
    const SentUpdates sent = read();
    EXPECT_LE(sent.size(), most);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), written.begin()));
  };
  for (std::size_t size = 0; size < whole.size(); ++size)
    expect_beginning({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, 2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ByteBuffer damaged = whole;
    damaged[i] ^= std::byte{0x10};
    expect_beginning(damaged, 2);
  }
}

TEST_F(SentLogTest, TellsOfADiskThatFailsAndSendsAllTheSame) {
  SentLog log("/nowhere/sent", {}, outbox_);
  log.submit(update_of(1, 0, 3));
  EXPECT_FALSE(log.status().ok());
  EXPECT_EQ(outbox_.sent.size(), 1U);
}

}  // namespace
}  // namespace longhaul
