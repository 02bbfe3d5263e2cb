// Before a replica joins: what is there to do?
#pragma once

#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// Asks the hub, once. kClosed: it is not there, or refuses.
Result<v1::Task> ask_for_task(Connector& connector, const std::string& name,
                              const std::string& token, Deadline deadline);

}  // namespace longhaul
