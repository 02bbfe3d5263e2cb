// How a process that moves large buffers all the time uses its memory.
#pragma once

namespace longhaul {

// Freed memory stays with the process for the next buffer. Otherwise every update and every mean
// comes from the system anew, page by page, which takes longer than to fill it. Call it before the
// first thread starts.
void keep_freed_memory();

// Gives all freed memory back to the system: after a large buffer that does not come again.
void return_freed_memory();

}  // namespace longhaul
