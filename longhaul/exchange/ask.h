// Questions to a hub from someone who has not joined it: one question, one answer.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// The answer that an event holds for someone who waits for an answer: the frame, or why there will
// be none. Nothing: neither yet.
std::optional<Result<Frame>> answer_in(StreamEvent& event);

// Both ask once. kClosed: the hub is not there; kMismatch: it refuses. `gives_up` is looked at now
// and then.

// What is there to do?
Result<v1::Task> ask_for_task(Connector& connector, const std::string& name,
                              const std::string& token, Deadline deadline,
                              const std::function<bool()>& gives_up = {});
// How is the run?
Result<v1::StatusReport> ask_for_status(Connector& connector, const std::string& name,
                                        const std::string& token, Deadline deadline,
                                        const std::function<bool()>& gives_up = {});

}  // namespace longhaul
