// Bytes that lie in several places and are sent or written as one, without a copy of the whole.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "longhaul/base/bytes.h"

namespace longhaul {

// Bytes in several pieces, as one.
// Copies share the bytes, which never change. Owners keep them alive.
class ByteRope {
 public:
  ByteRope() = default;
  ByteRope(SharedBytes bytes) {  // NOLINT(google-explicit-constructor): one piece is a rope
    append(std::move(bytes));
  }

  void append(SharedBytes bytes) {
    const ByteView view = *bytes;
    append(view, std::move(bytes));
  }
  // `owner` keeps the bytes of the view.
  void append(ByteView view, std::shared_ptr<const void> owner) {
    pieces_.push_back(view);
    owners_.push_back(std::move(owner));
    size_ += view.size();
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  // In their order; some may be empty.
  [[nodiscard]] std::span<const ByteView> pieces() const { return pieces_; }

 private:
  std::vector<ByteView> pieces_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::size_t size_ = 0;
};

}  // namespace longhaul
