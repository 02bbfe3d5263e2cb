// longhaul profile, the part that measures.
#pragma once

#include "apps/longhaul/profile/profile_options.h"

namespace longhaul::apps {

// The exit code.
int run_profile(const ProfileCommandOptions& arguments);

}  // namespace longhaul::apps
