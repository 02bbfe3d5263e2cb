// A stream whose other end is the test: it sees what is written, and says itself what happens.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "longhaul/transport/stream.h"

namespace longhaul::testing {

class HandStream final : public Stream {
 public:
  void read() override { ++reads; }
  void write(Frame frame) override {
    written.push_back(std::move(frame));
    is_writing = true;
  }
  void close() override { is_closed = true; }
  [[nodiscard]] std::string peer_name() const override { return {}; }

  // The first frame of that kind that was written and not taken yet; those before it are lost.
  [[nodiscard]] std::unique_ptr<Frame> take(Frame::KindCase kind) {
    while (!written.empty()) {
      auto frame = std::make_unique<Frame>(std::move(written.front()));
      written.pop_front();
      if (frame->kind_case() == kind) return frame;
    }
    return nullptr;
  }

  int reads = 0;
  std::deque<Frame> written;
  bool is_writing = false;
  bool is_closed = false;
  bool is_held = false;  // nothing passes
};

using HandStreamPtr = std::shared_ptr<HandStream>;

}  // namespace longhaul::testing
