#include "longhaul/base/result.h"

namespace longhaul {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kCorruptPayload:
      return "corrupt payload";
    case ErrorCode::kMismatch:
      return "mismatch";
    case ErrorCode::kNotFinite:
      return "not finite";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kDeadline:
      return "deadline";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kIo:
      return "input/output";
  }
  return "unknown";
}

}  // namespace longhaul
