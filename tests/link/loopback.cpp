#include "tests/link/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace longhaul {
namespace {

// Whether the event, or a failure, came before the deadline.
bool wait_for(int descriptor, short event, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = descriptor, .events = event, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<long>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
  }
}

sockaddr_in loopback_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void must(int outcome, const char* what) {
  if (outcome < 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Stream::Stream(int descriptor) : descriptor_(descriptor) {
  const int on = 1;
  must(::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

Stream::Stream(Stream&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Stream::~Stream() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t Stream::send_until(ByteView bytes, Deadline deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size() && wait_for(descriptor_, POLLOUT, deadline)) {
    const ByteView rest = bytes.subspan(sent);
    const ssize_t count =
        ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) break;
    sent += static_cast<std::size_t>(std::max<ssize_t>(0, count));
  }
  return sent;
}

void Stream::send_all(ByteView bytes, Deadline deadline) {
  if (send_until(bytes, deadline) != bytes.size()) throw std::runtime_error("not all was sent");
}

Received Stream::receive(std::span<std::byte> into, Deadline deadline) {
  if (!wait_for(descriptor_, POLLIN, deadline)) return {};
  const ssize_t count = ::recv(descriptor_, into.data(), into.size(), 0);
  if (count < 0) return {.seen = Seen::kReset};
  if (count == 0) return {.seen = Seen::kEnd};
  return {.seen = Seen::kBytes, .bytes = static_cast<std::size_t>(count)};
}

std::vector<std::byte> Stream::receive_all(std::size_t bytes, Deadline deadline) {
  std::vector<std::byte> all(bytes);
  for (std::size_t have = 0; have < bytes;) {
    const Received received = receive(std::span(all).subspan(have), deadline);
    if (received.seen != Seen::kBytes) throw std::runtime_error("not all was received");
    have += received.bytes;
  }
  return all;
}

Seen Stream::next(Deadline deadline) {
  std::array<std::byte, 1024> ignored{};
  return receive(ignored, deadline).seen;
}

void Stream::end() { must(::shutdown(descriptor_, SHUT_WR), "shutdown"); }

void Stream::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  must(::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), "SO_LINGER");
  ::close(std::exchange(descriptor_, -1));
}

Listener::Listener() : descriptor_(::socket(AF_INET, SOCK_STREAM, 0)) {
  must(descriptor_, "socket");
  sockaddr_in address = loopback_address(0);
  socklen_t length = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  must(::bind(descriptor_, plain, length), "bind");
  must(::listen(descriptor_, 64), "listen");
  must(::getsockname(descriptor_, plain, &length), "getsockname");
  port_ = ntohs(address.sin_port);
}

Listener::~Listener() { ::close(descriptor_); }

Stream Listener::accept(Deadline deadline) {
  if (!has_caller(deadline)) throw std::runtime_error("nobody called");
  const int descriptor = ::accept(descriptor_, nullptr, nullptr);
  must(descriptor, "accept");
  return Stream(descriptor);
}

bool Listener::has_caller(Deadline deadline) const {
  return wait_for(descriptor_, POLLIN, deadline);
}

Stream dial(std::uint16_t port, int send_buffer_bytes) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  must(descriptor, "socket");
  Stream stream(descriptor);
  if (send_buffer_bytes > 0) {
    must(::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &send_buffer_bytes,
                      sizeof send_buffer_bytes),
         "SO_SNDBUF");
  }
  // Blocks for no time to speak of: the kernel answers on loopback, whoever listens.
  const sockaddr_in address = loopback_address(port);
  must(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address),
       "connect");
  return stream;
}

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 56);
  return bytes;
}

}  // namespace longhaul
