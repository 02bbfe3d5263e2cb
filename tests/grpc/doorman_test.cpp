#include "longhaul/grpc/doorman.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <memory>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mailbox.h"

namespace longhaul {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kHello{"\x16\x03\x01\x02\x00", 5};

TEST(Greeting, IsRightOnlyFromItsFirstByteToItsLast) {
  for (std::size_t length = 0; length < kPreface.size(); ++length) {
    std::string said(kPreface.substr(0, length));
    EXPECT_EQ(greeting_of(said, false), Greeting::kTooShort) << length;
    said += '!';
    EXPECT_EQ(greeting_of(said, false), Greeting::kWrong) << length;
  }
  EXPECT_EQ(greeting_of(kPreface, false), Greeting::kRight);
  EXPECT_EQ(greeting_of(kHello, true), Greeting::kRight);
  EXPECT_EQ(greeting_of(kHello.substr(0, 1), true), Greeting::kTooShort);
  EXPECT_EQ(greeting_of(kHello, false), Greeting::kWrong);
  EXPECT_EQ(greeting_of(kPreface, true), Greeting::kWrong);
}

class DoormanTest : public ::testing::Test {
 protected:
  void open(bool is_tls = false, Seconds patience = Seconds(20), std::size_t most = 512) {
    doorman_ =
        Doorman::start(
            {.address = "127.0.0.1:0", .is_tls = is_tls, .patience = patience, .most = most},
            [this](int descriptor, const std::string& said) {
              std::array<char, 64> rest{};
              const ssize_t count = ::read(descriptor, rest.data(), rest.size());
              ::close(descriptor);
              (void)heard_.try_push(
                  "welcome: " + said + '|' +
                  std::string(rest.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))));
            },
            [this](const std::string& why) { (void)heard_.try_push(std::string(why)); })
            .value();
  }
  asio::ip::tcp::socket visit(std::string_view words = {}) {
    asio::ip::tcp::socket socket(context_);
    socket.connect(
        {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(doorman_->port())});
    asio::write(socket, asio::buffer(words));
    return socket;
  }
  std::string heard() {
    return heard_.pop_until(time_after(clock_.now(), Seconds(10))).value_or("nothing");
  }

  asio::io_context context_;
  Clock clock_;
  Mailbox<std::string> heard_{100};
  std::unique_ptr<Doorman> doorman_;
};

TEST_F(DoormanTest, WelcomesWhoBeginsAsTheProtocolDoes) {
  open();
  const auto visitor = visit(std::string(kPreface) + "and more");
  EXPECT_EQ(heard(), "welcome: " + std::string(kPreface) + "|and more");
}

TEST_F(DoormanTest, WaitsForWordsThatComeInPieces) {
  open();
  auto visitor = visit();
  visitor.set_option(asio::ip::tcp::no_delay(true));
  for (const char c : kPreface) asio::write(visitor, asio::buffer(&c, 1));
  EXPECT_EQ(heard(), "welcome: " + std::string(kPreface) + '|');
}

TEST_F(DoormanTest, WelcomesTlsWhereThatIsExpected) {
  open(true);
  const auto visitor = visit(kHello);
  EXPECT_EQ(heard(),
            "welcome: " + std::string(kHello.substr(0, 2)) + '|' + std::string(kHello.substr(2)));
}

TEST_F(DoormanTest, TurnsAwayWhoSpeaksAnythingElse) {
  open();
  const std::array<std::pair<std::string_view, std::string_view>, 4> cases{{
      {"GET / HTTP/1.1\r\n", "it speaks another HTTP"},
      {kHello, "it speaks TLS, and this hub does not"},
      {"\x01\x02garbage", "it does not speak HTTP/2"},
      {"PRI * HTTP/3", "it speaks another HTTP"},
  }};
  for (const auto& [words, why] : cases) {
    const auto visitor = visit(words);
    EXPECT_EQ(heard(), why);
  }
}

TEST_F(DoormanTest, TurnsAwayWhoDoesNotSpeakTls) {
  open(true);
  const auto http = visit("GET / HTTP/1.1\r\n");
  EXPECT_EQ(heard(), "it speaks HTTP without TLS");
  const auto garbage = visit("\x01\x02garbage");
  EXPECT_EQ(heard(), "it does not speak TLS");
}

TEST_F(DoormanTest, WhoSaysNothingIsTurnedAway) {
  open(false, Seconds(0.05));
  const auto silent = visit();
  EXPECT_EQ(heard(), "it did not say anything in time");
}

TEST_F(DoormanTest, WhoHangsUpIsTurnedAway) {
  open();
  visit("PRI").close();
  EXPECT_EQ(heard(), "it hung up before it said what it is");
}

// Words and the end of patience may come in the same moment: one of them counts.
TEST_F(DoormanTest, WordsInTheLastMomentAreNoHarm) {
  open(false, Seconds(0));
  for (int i = 0; i < 500; ++i) {
    const auto visitor = visit(kPreface);
    EXPECT_NE(heard(), "nothing");
  }
}

TEST_F(DoormanTest, OfTooManyWhoHaveNotSpokenTheFirstGoes) {
  open(false, Seconds(20), 2);
  const auto first = visit();
  auto second = visit();
  const auto third = visit();
  EXPECT_EQ(heard(), "too many that have not said anything");
  asio::write(second, asio::buffer(kPreface));
  EXPECT_EQ(heard(), "welcome: " + std::string(kPreface) + '|');
}

TEST_F(DoormanTest, LeavesDescriptorsForWhatTheHubHasToOpen) {
  doorman_ = Doorman::start(
                 {.address = "127.0.0.1:0", .first_reserved = 1},
                 [this](int descriptor, const std::string& /*said*/) {
                   ::close(descriptor);
                   (void)heard_.try_push("welcome");
                 },
                 [this](const std::string& why) { (void)heard_.try_push(std::string(why)); })
                 .value();
  const auto visitor = visit(kPreface);
  EXPECT_EQ(heard(), "too many connections are open");
}

TEST_F(DoormanTest, AnAddressThatIsNotThisMachinesIsAnError) {
  for (const char* address : {"192.0.2.1:0", "127.0.0.1", "127.0.0.1:port", ""})
    EXPECT_FALSE(Doorman::start({.address = address}, {}, {}).ok()) << address;
}

}  // namespace
}  // namespace longhaul
