// Plain sockets on 127.0.0.1 for tests. Every wait has a deadline; one that passes throws
// std::runtime_error, which fails the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/base/bytes.h"
#include "longhaul/base/clock.h"

namespace longhaul {

enum class Seen : std::uint8_t { kNothing, kBytes, kEnd, kReset };

struct Received {
  Seen seen = Seen::kNothing;
  std::size_t bytes = 0;
};

// One end of a connection, closed with it.
class Stream {
 public:
  explicit Stream(int descriptor);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // Gives up at the deadline and says how many bytes it got rid of.
  std::size_t send_until(ByteView bytes, Deadline deadline);
  void send_all(ByteView bytes, Deadline deadline);
  // At the deadline: nothing.
  Received receive(std::span<std::byte> into, Deadline deadline);
  std::vector<std::byte> receive_all(std::size_t bytes, Deadline deadline);
  // What comes next, whatever it is; bytes are taken.
  Seen next(Deadline deadline);

  void end();    // sends no more
  void reset();  // closes without an end

 private:
  int descriptor_;
};

class Listener {
 public:
  Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  Stream accept(Deadline deadline);
  [[nodiscard]] bool has_caller(Deadline deadline) const;

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

// `send_buffer_bytes` 0 leaves it to the kernel.
Stream dial(std::uint16_t port, int send_buffer_bytes = 0);

// The same for the same seed.
std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed);

}  // namespace longhaul
