// Why a connection to a hub failed, in our own words: gRPC's name its source files and libraries.
#pragma once

#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul {

struct ConnectionFacts {
  std::string address;  // HOST:PORT
  bool is_tls = false;
  bool has_heard = false;  // of the hub: both have agreed on TLS, or on none
};

// `cause` is gRPC's text. kClosed: the hub may answer later. kNotFound: nobody of that name, or
// someone else than a hub that this replica can talk to.
Error connection_error(std::string_view cause, const ConnectionFacts& facts);

}  // namespace longhaul
