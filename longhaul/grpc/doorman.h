// Listens for connections and reads their first bytes before gRPC does. It turns away peers that do
// not begin as the protocol does and peers that stay silent, and limits how many may wait. gRPC
// would do much of that too, but tell nobody.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"

namespace longhaul {

// The meaning of the first bytes of a connection. HTTP/2 and TLS both begin in one way only.
enum class Greeting { kRight, kWrong, kTooShort };
Greeting greeting_of(std::string_view said, bool is_tls);

class Doorman {
 public:
  struct Options {
    std::string address;     // HOST:PORT; port 0: the system chooses
    bool is_tls = false;     // what is expected
    Seconds patience{20.0};  // for first words
    std::size_t most = 512;  // connections that have not said them
    // Descriptors from this number on are for what the hub itself has to open. 0: the last 64 that
    // the system gives.
    int first_reserved = 0;
  };
  // One whose first words are right, and which bytes these were. The descriptor is the callee's.
  using Welcome = std::function<void(int descriptor, const std::string& said)>;
  using TurnAway = std::function<void(const std::string& why)>;

  // Both are called on the doorman's thread.
  static Result<std::unique_ptr<Doorman>> start(Options options, Welcome welcome,
                                                TurnAway turn_away);
  ~Doorman();
  Doorman(const Doorman&) = delete;
  Doorman& operator=(const Doorman&) = delete;

  [[nodiscard]] int port() const;

 private:
  class Loop;
  explicit Doorman(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
  std::jthread thread_;
};

}  // namespace longhaul
