// `longhaul status --watch`: asks a hub again and again, until the run is done or Ctrl-C.
#pragma once

#include "longhaul/base/units.h"
#include "longhaul/session/hub_access.h"

namespace longhaul::apps {

// Returns the exit code. A hub that was there may be away for a while; one that never was is an
// error.
int watch_status(const HubAccess& access, Seconds interval, bool json);

}  // namespace longhaul::apps
