// The inside of a Relay: its connections, and the loop on which everything about them happens.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/link/link_model.h"
#include "longhaul/link/relay_direction.h"

namespace longhaul {

class RelayLoop {
 public:
  RelayLoop(asio::ip::tcp::endpoint target, const LinkModel& link);

  // Before run(): takes a free port.
  Status listen();
  // On the thread that is to be the loop's; returns after stop().
  void run();
  void stop() { context_.stop(); }
  // Any other thread: does it on the loop and waits until it is done.
  void call(std::function<void()> action);

  [[nodiscard]] std::uint16_t port() const { return port_; }

  [[nodiscard]] std::uint64_t passed_up_on_loop() const { return up_.passed_on_loop(); }
  [[nodiscard]] std::uint64_t passed_down_on_loop() const { return down_.passed_on_loop(); }
  void cut_on_loop();
  void restore_on_loop();
  void drop_connections_on_loop();
  void restart_trace_on_loop();

 private:
  using ConnectionId = Shaper::ConnectionId;
  struct Connection {
    asio::ip::tcp::socket replica;
    asio::ip::tcp::socket hub;
    bool is_dialled = false;
    int open_directions = 2;
  };

  void check_on_loop() const;
  void accept_on_loop();
  void admit_on_loop(asio::ip::tcp::socket replica);
  void dial_on_loop(ConnectionId id);
  void join_on_loop(ConnectionId id, const std::error_code& failure);
  void lane_closed_on_loop(ConnectionId id, const std::error_code& failure);
  void reset_on_loop(ConnectionId id);
  void erase_on_loop(ConnectionId id);

  const asio::ip::tcp::endpoint target_;
  const int socket_buffer_bytes_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer accept_again_;
  std::uint16_t port_ = 0;
  bool is_accepting_ = false;
  bool is_cut_ = false;
  ConnectionId next_id_ = 0;
  std::map<ConnectionId, Connection> connections_;
  // Closed while the relay was cut, to be heard of after.
  std::vector<std::pair<ConnectionId, std::error_code>> closed_while_cut_;
  RelayDirection up_;
  RelayDirection down_;
};

}  // namespace longhaul
