// gRPC's own log, one for the whole process. It is kept off standard error. We read it because gRPC
// reports failed handshakes nowhere else. Only for .cpp files of this module.
#pragma once

#include <string>
#include <string_view>

namespace longhaul {

// Before anything else of gRPC's. Every call after the first does nothing.
void take_over_grpc_log();

// One more of failed_handshakes().
void count_failed_handshake(const std::string& why);

// Why a handshake failed, for people: gRPC's own text names source files and functions.
std::string handshake_failure(std::string_view grpc_text);

}  // namespace longhaul
