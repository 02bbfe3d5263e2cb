// A vector whose resize() leaves new elements undefined, for what is about to be written anyway.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace longhaul {

// Default-initialises where std::allocator would write zeros.
template <typename T>
struct UninitialisedAllocator : std::allocator<T> {
  using value_type = T;  // NOLINT(readability-identifier-naming): the standard library asks for it
  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
};

template <typename T>
using Scratch = std::vector<T, UninitialisedAllocator<T>>;

}  // namespace longhaul
