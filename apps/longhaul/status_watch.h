// `longhaul status --watch`: asks a hub again and again, until the run is done or Ctrl-C.
#pragma once

#include "apps/longhaul/train_options.h"
#include "longhaul/base/units.h"

namespace longhaul::apps {

struct WatchOptions {
  Seconds interval{2};
  bool json = false;
};

// Returns the exit code. A hub that was there may be away for a while; one that never was is an
// error.
int watch_status(const HubAccess& access, const WatchOptions& options);

}  // namespace longhaul::apps
