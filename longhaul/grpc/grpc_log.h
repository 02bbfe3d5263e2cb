// gRPC's own log, which is one for the whole process: it is kept off standard error, and read, as
// gRPC tells nowhere else of connections that fail before there is a stream. Only for .cpp files of
// this module.
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
