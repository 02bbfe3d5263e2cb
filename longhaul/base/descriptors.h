// How many files and connections this process may have open.
#pragma once

namespace longhaul {

// To as many as the system lets it have without asking anyone.
void raise_descriptor_limit();

[[nodiscard]] int descriptor_limit();

}  // namespace longhaul
