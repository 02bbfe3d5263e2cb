// Someone who measures the link to the hub: what it asks for is sent, what it sends is counted and
// dropped. Belongs to the hub's loop.
#pragma once

#include <cstdint>
#include <deque>

#include "longhaul/base/clock.h"
#include "longhaul/base/result.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

class ProbeGuest {
 public:
  // Says that it may begin.
  ProbeGuest(StreamPtr stream, TimePoint now);

  // An error: it asks for more than a guest may.
  Status on_frame(const Frame& frame, TimePoint now);
  void on_written(TimePoint now);
  // When something last moved.
  [[nodiscard]] TimePoint last_moved() const { return last_moved_; }

 private:
  Status on_chunk(const v1::Chunk& chunk, TimePoint now);
  [[nodiscard]] Frame next_chunk();
  void answer(Frame frame);
  void write_next();

  StreamPtr stream_;
  TimePoint last_moved_;
  std::deque<Frame> answers_;
  bool is_writing_ = false;
  std::uint64_t total_ = 0;     // of the transfer down that is under way
  std::uint64_t sent_ = 0;      // of it
  std::uint64_t received_ = 0;  // of the transfer up that is under way
  std::uint64_t first_chunk_ = 0;
  TimePoint first_at_;
  std::uint64_t allowance_;  // bytes in both directions that are left
};

}  // namespace longhaul
