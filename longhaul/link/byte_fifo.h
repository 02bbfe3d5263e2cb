// Bytes in the order they came, in one piece of memory that grows to what was once needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "longhaul/base/bytes.h"
#include "longhaul/base/check.h"

namespace longhaul {

class ByteFifo {
 public:
  [[nodiscard]] std::size_t size() const { return end_ - begin_; }

  // Room for `bytes` more; those that are written there join with append(). Valid until the next
  // call of either.
  std::span<std::byte> space(std::size_t bytes) {
    if (storage_.size() - end_ < bytes) make_space(bytes);
    return std::span(storage_).subspan(end_, bytes);
  }
  void append(std::size_t bytes) {
    LONGHAUL_CHECK_LE(bytes, storage_.size() - end_);
    end_ += bytes;
  }

  [[nodiscard]] ByteView front(std::size_t bytes) const {
    LONGHAUL_CHECK_LE(bytes, size());
    return ByteView(storage_).subspan(begin_, bytes);
  }
  void drop(std::size_t bytes) {
    LONGHAUL_CHECK_LE(bytes, size());
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }

 private:
  // Moves only when at least as much was dropped as is moved: each byte is moved about once.
  void make_space(std::size_t bytes) {
    if (begin_ >= size() && begin_ > 0) {
      std::memmove(storage_.data(), storage_.data() + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (storage_.size() - end_ < bytes) {
      storage_.resize(std::max(end_ + bytes, 2 * storage_.size()));
    }
  }

  ByteBuffer storage_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace longhaul
