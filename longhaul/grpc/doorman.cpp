#include "longhaul/grpc/doorman.h"

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <system_error>
#include <utility>

#include "longhaul/base/descriptors.h"

namespace longhaul {
namespace {

using asio::ip::tcp;

constexpr std::string_view kHttp2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::string_view kTls{"\x16\x03", 2};  // a handshake, of version 3 and something
constexpr int kReserved = 64;
constexpr std::chrono::milliseconds kBreath{100};  // before trying again where sockets ran out

std::string what_it_is(std::string_view said, bool is_tls) {
  if (said.starts_with(kTls)) return "it speaks TLS, and this hub does not";
  const bool is_word = !said.empty() && said.front() >= 'A' && said.front() <= 'Z';
  if (is_tls) return is_word ? "it speaks HTTP without TLS" : "it does not speak TLS";
  return is_word ? "it speaks another HTTP" : "it does not speak HTTP/2";
}

// An address of version 6 is in brackets.
std::string host_in(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Empty: there is none.
std::string port_in(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string::npos ? std::string() : address.substr(colon + 1);
}

}  // namespace

Greeting greeting_of(std::string_view said, bool is_tls) {
  const std::string_view expected = is_tls ? kTls : kHttp2;
  const std::size_t length = std::min(said.size(), expected.size());
  if (said.substr(0, length) != expected.substr(0, length)) return Greeting::kWrong;
  return length == expected.size() ? Greeting::kRight : Greeting::kTooShort;
}

class Doorman::Loop {
 public:
  Loop(Options options, Welcome welcome, TurnAway turn_away)
      : options_(std::move(options)),
        welcome_(std::move(welcome)),
        turn_away_(std::move(turn_away)) {}

  Status listen() {
    std::error_code failure;
    const std::string port = port_in(options_.address);
    if (port.empty())
      return Error{ErrorCode::kInvalidArgument,
                   "expected HOST:PORT to listen on, got " + options_.address};
    tcp::resolver resolver(context_);
    for (const auto& one :
         resolver.resolve(host_in(options_.address), port, tcp::resolver::passive, failure))
      listen_at(one, failure);
    if (!doors_.empty()) return Done{};
    if (!failure) failure = asio::error::host_not_found;
    return Error{ErrorCode::kIo, "cannot listen on " + options_.address + ": " + failure.message()};
  }
  void run() {
    for (tcp::acceptor& door : doors_) accept_on_loop(door);
    context_.run();
  }
  void stop() { context_.stop(); }
  [[nodiscard]] int port() const { return port_; }

 private:
  struct Visitor {
    explicit Visitor(tcp::socket from) : socket(std::move(from)), patience(socket.get_executor()) {}
    tcp::socket socket;
    asio::steady_timer patience;
    std::array<char, kHttp2.size()> said{};
    std::size_t length = 0;
  };
  using VisitorId = std::uint64_t;

  // A name may have several addresses: they have one port.
  void listen_at(tcp::endpoint endpoint, std::error_code& failure) {
    if (endpoint.port() == 0) endpoint.port(static_cast<std::uint16_t>(port_));
    tcp::acceptor& door = doors_.emplace_back(context_);
    door.open(endpoint.protocol(), failure);
    if (!failure) door.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) door.bind(endpoint, failure);
    if (!failure) door.listen(asio::socket_base::max_listen_connections, failure);
    if (!failure) port_ = door.local_endpoint(failure).port();
    if (failure) doors_.pop_back();
  }

  void accept_on_loop(tcp::acceptor& door) {
    door.async_accept([this, &door](const std::error_code& failure, tcp::socket socket) {
      if (!failure) {
        accept_on_loop(door);
        return admit_on_loop(std::move(socket));
      }
      const auto breath = std::make_shared<asio::steady_timer>(context_, kBreath);
      breath->async_wait([this, &door, breath](const std::error_code&) { accept_on_loop(door); });
    });
  }

  // An honest peer speaks at once. If too many wait, drop the one that has been silent the longest.
  void admit_on_loop(tcp::socket socket) {
    std::error_code ignored;
    socket.non_blocking(true, ignored);
    // The system gives the lowest number that is free. Those who are in count too, in whichever
    // state gRPC has them: without an end to it strangers would take what a journal needs.
    if (socket.native_handle() >= first_reserved_) {
      hear_out(socket);
      return turn_away_("too many connections are open");
    }
    if (visitors_.size() >= options_.most)
      end_on_loop(visitors_.begin()->first, "too many that have not said anything");
    socket.set_option(tcp::no_delay(true), ignored);
    const VisitorId id = next_++;
    Visitor& visitor = visitors_.try_emplace(id, std::move(socket)).first->second;
    visitor.patience.expires_after(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(options_.patience));
    visitor.patience.async_wait([this, id](const std::error_code& failure) {
      if (!failure) end_on_loop(id, "it did not say anything in time");
    });
    listen_to_on_loop(id);
  }

  void listen_to_on_loop(VisitorId id) {
    Visitor& visitor = visitors_.at(id);
    // No more than the greeting: what follows is gRPC's to read.
    const std::size_t wanted =
        (options_.is_tls ? kTls.size() : visitor.said.size()) - visitor.length;
    visitor.socket.async_read_some(
        asio::buffer(visitor.said.data() + visitor.length, wanted),
        [this, id](const std::error_code& failure, std::size_t count) {
          if (!visitors_.contains(id)) return;
          if (failure)
            return end_on_loop(id, options_.is_tls ? "it hung up before TLS was agreed upon"
                                                   : "it hung up before it said what it is");
          hear_on_loop(id, count);
        });
  }

  void hear_on_loop(VisitorId id, std::size_t count) {
    Visitor& visitor = visitors_.at(id);
    visitor.length += count;
    const std::string said(visitor.said.data(), visitor.length);
    switch (greeting_of(said, options_.is_tls)) {
      case Greeting::kTooShort:
        return listen_to_on_loop(id);
      case Greeting::kWrong:
        return end_on_loop(id, what_it_is(said, options_.is_tls));
      case Greeting::kRight:
        break;
    }
    std::error_code failure;
    const int descriptor = visitor.socket.release(failure);
    visitors_.erase(id);
    if (!failure) welcome_(descriptor, said);
  }

  // A timer that has run out cannot be called back: the visitor may be gone.
  void end_on_loop(VisitorId id, const std::string& why) {
    const auto visitor = visitors_.find(id);
    if (visitor == visitors_.end()) return;
    hear_out(visitor->second.socket);
    visitors_.erase(visitor);
    turn_away_(why);
  }

  // Unread bytes at the end would turn the close into a reset, and the peer would report a network
  // error.
  static void hear_out(tcp::socket& socket) {
    std::array<char, 4096> rest{};
    std::error_code failure;
    for (int i = 0; i < 16 && !failure; ++i) (void)socket.read_some(asio::buffer(rest), failure);
  }

  const Options options_;
  const int first_reserved_ = options_.first_reserved > 0 ? options_.first_reserved
                                                          : descriptor_limit() - kReserved;
  const Welcome welcome_;
  const TurnAway turn_away_;
  asio::io_context context_{1};
  std::list<tcp::acceptor> doors_;
  int port_ = 0;
  VisitorId next_ = 0;
  std::map<VisitorId, Visitor> visitors_;
};

Result<std::unique_ptr<Doorman>> Doorman::start(Options options, Welcome welcome,
                                                TurnAway turn_away) {
  auto loop = std::make_unique<Loop>(std::move(options), std::move(welcome), std::move(turn_away));
  LONGHAUL_TRY(loop->listen());
  return std::unique_ptr<Doorman>(new Doorman(std::move(loop)));
}

Doorman::Doorman(std::unique_ptr<Loop> loop)
    : loop_(std::move(loop)), thread_([this] { loop_->run(); }) {}

Doorman::~Doorman() { loop_->stop(); }

int Doorman::port() const { return loop_->port(); }

}  // namespace longhaul
