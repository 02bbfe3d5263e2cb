// The address of this machine on the way to another one.
#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

// Asks the routing table. Sends nothing.
Result<std::string> local_address_towards(const std::string& host, std::uint16_t port);

}  // namespace longhaul::trainer
