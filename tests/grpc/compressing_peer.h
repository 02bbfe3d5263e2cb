// A peer of a hub that lets gRPC compress what it sends, which ours never do.
#pragma once

#include <memory>

namespace longhaul {

// Connects and sends one frame of 100 kB that compresses well; the connection lasts as long as what
// is returned.
std::shared_ptr<void> send_compressed(int port);

}  // namespace longhaul
