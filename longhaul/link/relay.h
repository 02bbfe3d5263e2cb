// A WAN on one machine, without root. A TCP relay between one replica and the hub passes bytes at
// the rate of a link and delivers them a latency later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "longhaul/base/result.h"
#include "longhaul/link/link_model.h"

namespace longhaul {

class RelayLoop;

// A link between real processes: it forwards bytes at the rate and with the latency of a model.
// All connections that are made to port() on 127.0.0.1 share the two lines of the link. They take
// turns in small slices, so a ping does not wait behind bulk data. Each line queues max(64 KiB,
// twice bandwidth × loop latency); then the relay stops reading and TCP holds the sender back. A
// connection's end arrives behind its last byte; a reset arrives at once. Handshakes take no time:
// the relay answers them itself. Every function may be called from every thread, and what it asks
// for is done when it returns.
class Relay {
 public:
  // The link's traces start when the relay does. Fails where the hub's address, in numbers, cannot
  // be read or no port can be had. A hub that does not answer is no failure: connections to it are
  // then reset, as they come.
  static Result<std::unique_ptr<Relay>> start(std::uint16_t hub_port, const LinkModel& link,
                                              const std::string& hub_address = "127.0.0.1");
  // Closes all connections, whatever they are doing.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  // Bytes that were delivered so far.
  [[nodiscard]] std::uint64_t passed_up() const;
  [[nodiscard]] std::uint64_t passed_down() const;

  // An outage without a sound: no byte, no end, no reset passes, and new connections get nothing.
  void cut();
  // Bytes flow again, those that were under way first.
  void restore();
  // Resets every connection on both sides.
  void drop_connections();
  // The traces start anew.
  void restart_trace();

 private:
  explicit Relay(std::unique_ptr<RelayLoop> loop);

  std::unique_ptr<RelayLoop> loop_;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace longhaul
