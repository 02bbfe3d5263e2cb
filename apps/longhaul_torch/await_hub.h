// Asks a hub what there is to do, and waits for one that is not there yet.
#pragma once

#include <optional>

#include "apps/longhaul/train/train_options.h"
#include "longhaul/base/log.h"
#include "proto/longhaul.pb.h"

namespace longhaul::apps {

// A hub that does not answer is asked again, for so long or until Ctrl-C; a refusal is final.
Result<v1::Task> await_task(Connector& connector, const HubAccess& access,
                            std::optional<Seconds> longest, const Log& log);

}  // namespace longhaul::apps
