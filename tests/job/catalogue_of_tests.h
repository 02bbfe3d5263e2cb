// The built-in scenarios as they lie in the repository.
#pragma once

#include "longhaul/job/scenario.h"
#include "trainer/catalogue.h"

namespace longhaul {

inline Catalogue catalogue_of_tests() {
  Catalogue known = trainer::catalogue();
  known.scenarios = "scenarios";
  return known;
}

}  // namespace longhaul
