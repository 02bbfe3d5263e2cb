#include "longhaul/link/relay_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/ip/address_v4.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul {
namespace {

using asio::ip::tcp;

// The kernel's buffers on both sides add to the queue, and a sender cannot tell them from a faster
// link. So they are small: 10 ms of the link, at least 64 KiB, one segment of loopback, at most 1
// MiB. That keeps the line busy while the loop waits for a processor.
int buffer_bytes_for(const LinkModel& link) {
  constexpr double kHeldSeconds = 0.01;
  const double rate = std::max(link.up.mean().bytes_per_second, link.down.mean().bytes_per_second);
  return static_cast<int>(std::clamp(rate * kHeldSeconds, 64.0 * 1024, 1024.0 * 1024));
}

// Best effort: a socket that is already broken says so when it is used. Buffers are set before the
// handshake, which agrees on the window's scale.
template <typename Socket>
void limit_buffers(Socket& socket, int bytes) {
  std::error_code ignored;
  socket.set_option(asio::socket_base::receive_buffer_size(bytes), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(bytes), ignored);
}

void make_prompt(tcp::socket& socket) {
  std::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  // The relay alone decides when bytes pass. BBR would pace them by what it believes of loopback.
  constexpr std::array kReno{'r', 'e', 'n', 'o'};
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_CONGESTION, kReno.data(), kReno.size());
}

// Not left to the destructor, which would send an end all the same.
void close_with_reset(tcp::socket& socket) {
  std::error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace

RelayLoop::RelayLoop(tcp::endpoint target, const LinkModel& link)
    : target_(std::move(target)),
      socket_buffer_bytes_(buffer_bytes_for(link)),
      work_(context_.get_executor()),
      acceptor_(context_),
      accept_again_(context_),
      up_(context_, Shaper(link.up, link.latency),
          [this](ConnectionId id, const std::error_code& failure) {
            lane_closed_on_loop(id, failure);
          }),
      down_(context_, Shaper(link.down, link.latency),
            [this](ConnectionId id, const std::error_code& failure) {
              lane_closed_on_loop(id, failure);
            }) {}

Status RelayLoop::listen() {
  std::error_code failure;
  const tcp::endpoint any_port(asio::ip::address_v4::loopback(), 0);
  acceptor_.open(any_port.protocol(), failure);
  if (!failure) {
    limit_buffers(acceptor_, socket_buffer_bytes_);  // accepted sockets inherit them
    acceptor_.bind(any_port, failure);
  }
  if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
  if (!failure) port_ = acceptor_.local_endpoint(failure).port();
  if (failure) return Error{ErrorCode::kIo, "relay: cannot listen: " + failure.message()};
  return Done{};
}

void RelayLoop::run() {
  asio::post(context_, [this] { accept_on_loop(); });
  context_.run();
}

void RelayLoop::call(std::function<void()> action) {
  std::packaged_task<void()> task(std::move(action));
  std::future<void> done = task.get_future();
  asio::post(context_, [task = std::move(task)]() mutable { task(); });
  done.get();
}

void RelayLoop::cut_on_loop() {
  check_on_loop();
  is_cut_ = true;
  std::error_code ignored;
  acceptor_.cancel(ignored);
  up_.cut_on_loop();
  down_.cut_on_loop();
}

void RelayLoop::restore_on_loop() {
  check_on_loop();
  is_cut_ = false;
  for (const auto& [id, failure] : std::exchange(closed_while_cut_, {}))
    lane_closed_on_loop(id, failure);
  up_.restore_on_loop();
  down_.restore_on_loop();
  for (auto& [id, connection] : connections_) {
    if (!connection.is_dialled) dial_on_loop(id);
  }
  accept_on_loop();
}

void RelayLoop::drop_connections_on_loop() {
  check_on_loop();
  while (!connections_.empty()) reset_on_loop(connections_.begin()->first);
}

void RelayLoop::restart_trace_on_loop() {
  check_on_loop();
  up_.restart_trace_on_loop();
  down_.restart_trace_on_loop();
}

void RelayLoop::check_on_loop() const {
  LONGHAUL_CHECK(work_.get_executor().running_in_this_thread());
}

void RelayLoop::accept_on_loop() {
  if (is_accepting_ || is_cut_) return;
  is_accepting_ = true;
  acceptor_.async_accept([this](const std::error_code& failure, tcp::socket replica) {
    is_accepting_ = false;
    if (!failure) admit_on_loop(std::move(replica));
    if (!failure || failure == asio::error::operation_aborted) return accept_on_loop();
    // Most likely out of file descriptors: trying at once again would spin.
    accept_again_.expires_after(std::chrono::milliseconds(100));
    accept_again_.async_wait([this](const std::error_code&) { accept_on_loop(); });
  });
}

void RelayLoop::admit_on_loop(tcp::socket replica) {
  const ConnectionId id = next_id_++;
  make_prompt(replica);
  connections_.emplace(id, Connection{.replica = std::move(replica), .hub = tcp::socket(context_)});
  if (!is_cut_) dial_on_loop(id);
}

void RelayLoop::dial_on_loop(ConnectionId id) {
  Connection& connection = connections_.at(id);
  connection.is_dialled = true;
  std::error_code failure;
  connection.hub = tcp::socket(context_);
  connection.hub.open(target_.protocol(), failure);
  if (failure) return asio::post(context_, [this, id, failure] { join_on_loop(id, failure); });
  limit_buffers(connection.hub, socket_buffer_bytes_);
  connection.hub.async_connect(
      target_, [this, id](const std::error_code& outcome) { join_on_loop(id, outcome); });
}

void RelayLoop::join_on_loop(ConnectionId id, const std::error_code& failure) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // dropped
  Connection& connection = found->second;
  if (failure && is_cut_) {
    connection.is_dialled = false;  // a cut is silent: restore_on_loop tries again
  } else if (failure) {
    reset_on_loop(id);
  } else {
    make_prompt(connection.hub);
    up_.add_on_loop(id, connection.replica, connection.hub);
    down_.add_on_loop(id, connection.hub, connection.replica);
  }
}

void RelayLoop::lane_closed_on_loop(ConnectionId id, const std::error_code& failure) {
  if (is_cut_) {
    closed_while_cut_.emplace_back(id, failure);
    return;
  }
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (failure) return reset_on_loop(id);
  if (--found->second.open_directions == 0) erase_on_loop(id);
}

void RelayLoop::reset_on_loop(ConnectionId id) {
  Connection& connection = connections_.at(id);
  close_with_reset(connection.replica);
  close_with_reset(connection.hub);
  erase_on_loop(id);
}

void RelayLoop::erase_on_loop(ConnectionId id) {
  up_.remove_on_loop(id);
  down_.remove_on_loop(id);
  connections_.erase(id);
}

}  // namespace longhaul
