// Why a connection to a hub failed, in our own words: gRPC's name its source files and libraries.
#pragma once

#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul {

// `cause` is gRPC's text, `address` is HOST:PORT. kClosed: the hub may answer later. kNotFound:
// nobody of that name, or someone else than a hub that this replica can talk to.
Error connection_error(std::string_view cause, const std::string& address, bool is_tls);

// The same once the hub was heard: both have agreed on TLS, or on none.
Error broken_connection(std::string_view cause, const std::string& address);

}  // namespace longhaul
