// Errors of the world as values: a Result holds either what was asked for or why it is not there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace longhaul {

// The kind of an error, for code that decides by it.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // text that a user wrote and that cannot be read
  kCorruptPayload,   // bytes that do not follow the wire format
  kMismatch,         // well-formed, but not what was agreed on (element count, version, digest)
  kNotFinite,        // NaN or infinity where a number is needed
  kNotFound,         // a file, a program or a peer that is not there
  kDeadline,         // not in time
  kClosed,           // the other side ended
  kIo,               // the operating system refused
};

std::string_view name_of(ErrorCode code);

// An error of the world: its kind, and a line for people.
struct Error {
  ErrorCode code;
  std::string message;

  // Puts what was being done in front of the cause: "replica 2, round 7: header: bad magic".
  [[nodiscard]] Error within(std::string_view what) && {
    message.insert(0, ": ").insert(0, what);
    return std::move(*this);
  }
  bool operator==(const Error&) const = default;
};

inline Error corrupt_payload(std::string what) {
  return Error{ErrorCode::kCorruptPayload, std::move(what)};
}

// A value, or the error that stands in its place.
// value() and error() may be called only on the side that is there; ok() tells which.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  // By value: a reference into a temporary would outlive it in `const auto& x = f().value()`.
  T value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

// The value of a function that can fail but has nothing to hand back.
using Done = std::monostate;
using Status = Result<Done>;

// The value of a Result, or a return from this function with its error:
//
//   const Plan plan = LONGHAUL_TRY(parse_plan(text));
//
// A statement expression, which GCC and Clang have: C++ has no other way to return from within one.
#define LONGHAUL_TRY(expression)                                        \
  (__extension__({                                                      \
    auto longhaul_tried = (expression);                                 \
    if (!longhaul_tried.ok()) return std::move(longhaul_tried).error(); \
    std::move(longhaul_tried).value();                                  \
  }))

}  // namespace longhaul
