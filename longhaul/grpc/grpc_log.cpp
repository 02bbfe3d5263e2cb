#include "longhaul/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <array>
#include <mutex>
#include <utility>

#include "longhaul/grpc/grpc_transport.h"

namespace longhaul {
namespace {

// gRPC calls a plain function: its count must be global.
std::mutex& count_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Both under the mutex.
std::uint64_t& handshake_count() {
  static std::uint64_t count = 0;
  return count;
}
std::string& last_cause() {
  static std::string cause;
  return cause;
}

// All lines are dropped, but those of a server are counted.
void read_grpc_line(gpr_log_func_args* line) {
  constexpr std::string_view kServer = "chttp2_server.cc";
  constexpr std::string_view kFailed = "Handshaking failed: ";
  const std::string_view text = line->message;
  if (!std::string_view(line->file).ends_with(kServer) || !text.starts_with(kFailed)) return;
  count_failed_handshake(handshake_failure(text));
}

}  // namespace

void count_failed_handshake(const std::string& why) {
  const std::scoped_lock lock(count_mutex());
  ++handshake_count();
  last_cause() = why;
}

void take_over_grpc_log() {
  [[maybe_unused]] static const bool kIsTaken = [] {
    (void)last_failed_handshake();  // made before the first line comes
    gpr_set_log_function(read_grpc_line);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);  // failed handshakes are no more than that to it
    return true;
  }();
}

std::string handshake_failure(std::string_view grpc_text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kCauses{{
      {"peer did not return a certificate", "it showed no certificate"},
      {"certificate verify failed", "its certificate is of another authority, or expired"},
      {"alert unknown ca", "it does not take this hub's certificate: its invite is another hub's"},
      {"alert", "it ended the TLS handshake"},
      {"http request", "it speaks HTTP without TLS"},
      {"wrong version number", "it does not speak TLS"},
      {"timed out", "it did not say anything in time"},
      {"Socket closed", "it hung up before TLS was agreed upon"},
      {"reset by peer", "it hung up before TLS was agreed upon"},
  }};
  for (const auto& [sign, meaning] : kCauses) {
    if (grpc_text.find(sign) != std::string_view::npos) return std::string(meaning);
  }
  return "no agreement on TLS";
}

std::uint64_t failed_handshakes() {
  const std::scoped_lock lock(count_mutex());
  return handshake_count();
}

std::string last_failed_handshake() {
  const std::scoped_lock lock(count_mutex());
  return last_cause();
}

}  // namespace longhaul
