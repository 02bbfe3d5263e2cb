// Where a replica or a visitor dials, and as whom.
#pragma once

#include <optional>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/grpc/grpc_transport.h"

namespace longhaul {

struct HubAccess {
  std::string address;
  std::string name;
  std::string token;
  std::optional<TlsKeys> tls;
};

// Either the file of an invite, or the address of a hub without TLS and a name. Errors are worded
// as the options --invite, --hub and --name.
Result<HubAccess> hub_access(const std::string& invite, const std::string& hub,
                             const std::string& name);

}  // namespace longhaul
