// Questions to a hub from someone who has not joined it: one question, one answer.
#pragma once

#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

// Both ask once. kClosed: the hub is not there; kMismatch: it refuses.

// What is there to do?
Result<v1::Task> ask_for_task(Connector& connector, const std::string& name,
                              const std::string& token, Deadline deadline);
// How is the run?
Result<v1::StatusReport> ask_for_status(Connector& connector, const std::string& name,
                                        const std::string& token, Deadline deadline);

}  // namespace longhaul
