#include "longhaul/link/relay.h"

#include <asio/ip/address.hpp>
#include <asio/ip/tcp.hpp>
#include <utility>

#include "longhaul/link/relay_loop.h"

namespace longhaul {

Result<std::unique_ptr<Relay>> Relay::start(std::uint16_t hub_port, const LinkModel& link,
                                            const std::string& hub_address) {
  std::error_code failure;
  const asio::ip::address address = asio::ip::make_address(hub_address, failure);
  if (failure || hub_port == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "relay: expected an address in numbers and a port of the hub, got \"" +
                     hub_address + "\" and " + std::to_string(hub_port)};
  }
  auto loop = std::make_unique<RelayLoop>(asio::ip::tcp::endpoint(address, hub_port), link);
  LONGHAUL_TRY(loop->listen());
  return std::unique_ptr<Relay>(new Relay(std::move(loop)));
}

Relay::Relay(std::unique_ptr<RelayLoop> loop)
    : loop_(std::move(loop)), thread_([this] { loop_->run(); }) {}

Relay::~Relay() { loop_->stop(); }

std::uint16_t Relay::port() const { return loop_->port(); }

std::uint64_t Relay::passed_up() const {
  std::uint64_t bytes = 0;
  loop_->call([&] { bytes = loop_->passed_up_on_loop(); });
  return bytes;
}

std::uint64_t Relay::passed_down() const {
  std::uint64_t bytes = 0;
  loop_->call([&] { bytes = loop_->passed_down_on_loop(); });
  return bytes;
}

void Relay::cut() {
  loop_->call([this] { loop_->cut_on_loop(); });
}

void Relay::restore() {
  loop_->call([this] { loop_->restore_on_loop(); });
}

void Relay::drop_connections() {
  loop_->call([this] { loop_->drop_connections_on_loop(); });
}

void Relay::restart_trace() {
  loop_->call([this] { loop_->restart_trace_on_loop(); });
}

}  // namespace longhaul
