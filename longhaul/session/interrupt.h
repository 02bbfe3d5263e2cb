// Ctrl-C as a flag that loops look at.
#pragma once

namespace longhaul {

// From now on the first SIGINT or SIGTERM only sets the flag; the second one ends the program at
// once.
void notice_interrupts();
bool is_interrupted();

}  // namespace longhaul
