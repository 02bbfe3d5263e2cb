// `lab`: trains every run of a study, tells how far it is, and writes the results.
#pragma once

#include "apps/longhaul/lab/lab_options.h"

namespace longhaul::apps {

// The exit code.
int run_lab(const LabCommandOptions& arguments);

}  // namespace longhaul::apps
