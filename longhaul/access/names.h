// Names that people give: of replicas, of hosts, and where a hub listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "longhaul/base/result.h"

namespace longhaul::access {

// Errors are kInvalidArgument and say what was expected and what was got.

// The name of a replica, which becomes a common name, a file name and a column of tables: 1 to 64
// of A-Z a-z 0-9 . _ - and neither . nor - in front.
Status check_name(std::string_view name);

// A host name in lower case, or an IP address in its shortest form.
Result<std::string> normal_host(std::string_view host);
bool is_ip(const std::string& normal_host);

// A host and a port.
struct Address {
  std::string host;  // normal
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

// HOST:PORT; an IPv6 address stands in brackets.
Result<Address> parse_address(std::string_view text);
std::string to_text(const Address& address);
// Is it the machine that asks?
bool is_loopback(const Address& address);

}  // namespace longhaul::access
