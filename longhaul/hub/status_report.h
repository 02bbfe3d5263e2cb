// How the run is, as the hub tells those who ask.
#pragma once

#include "longhaul/hub/hub_core.h"

namespace longhaul {

v1::StatusReport report_of(const HubStatus& status, const v1::Task& task);

}  // namespace longhaul
