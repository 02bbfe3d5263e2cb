// Streams over gRPC: HTTP/2 with or without mutual TLS. Nothing of gRPC's shows here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/base/tls_keys.h"
#include "longhaul/base/units.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// A connection on which nothing comes is pinged now and then: routers forget those that are idle,
// and one that broke without a sound ends. Patient: behind bulk data on a slow link a ping takes
// long.
struct Keepalive {
  Seconds every{20.0};
  Seconds patience{40.0};
};

// Serves until it is destroyed; then every stream ends.
class GrpcServer {
 public:
  // Listens at `address`; port 0: the system chooses. Without `tls`: serves anyone who reaches the
  // port.
  static Result<std::unique_ptr<GrpcServer>> start(Acceptor acceptor, const std::string& address,
                                                   const std::optional<TlsKeys>& tls,
                                                   const Keepalive& keepalive = {});
  virtual ~GrpcServer() = default;

  [[nodiscard]] virtual int port() const = 0;
};

// Connections to the servers of this process that failed before there was a stream.
std::uint64_t failed_handshakes();
// The cause of the last one.
std::string last_failed_handshake();

// Dials `address`, one connection for each stream.
std::unique_ptr<Connector> make_grpc_connector(std::string address,
                                               const std::optional<TlsKeys>& tls,
                                               const Keepalive& keepalive = {});

}  // namespace longhaul
