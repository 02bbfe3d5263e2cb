// Ranks as threads of one process: what they gather and sum meets in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "trainer/rank_calls.h"

namespace longhaul::testing {

class ThreadsGather {
 public:
  explicit ThreadsGather(std::size_t ranks) : bytes_(ranks) {}

  [[nodiscard]] trainer::AllGather of(std::size_t rank) {
    return [this, rank](ByteView own) { return gather(rank, own); };
  }

  [[nodiscard]] trainer::AllReduce sum_of(std::size_t rank) {
    return [this, rank](std::span<float> values) -> Status {
      const std::span own = std::as_bytes(std::span<const float>(values));
      const std::vector<ByteBuffer> all = LONGHAUL_TRY(gather(rank, own));
      std::ranges::fill(values, 0.0F);
      for (const ByteBuffer& one : all) {
        std::vector<float> theirs(values.size());
        std::memcpy(theirs.data(), one.data(), one.size());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
      }
      return Done{};
    };
  }

  // Every gather that is under way or comes later fails.
  void lose(std::size_t rank) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      lost_ = Error{ErrorCode::kClosed, "rank " + std::to_string(rank) + " is gone"};
    }
    changed_.notify_all();
  }

 private:
  Result<std::vector<ByteBuffer>> gather(std::size_t rank, ByteView own) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    bytes_[rank] = ByteBuffer(own.begin(), own.end());
    const std::size_t turn = turn_;
    if (++here_ == bytes_.size()) {
      for (const ByteBuffer& one : bytes_) LONGHAUL_CHECK_EQ(one.size(), own.size());
      gathered_ = bytes_;
      here_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(mutex_, [this, turn]() REQUIRES(mutex_) { return lost_ || turn_ != turn; });
    if (turn_ == turn) return *lost_;
    return gathered_;  // until all have come again, so until this rank has
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<ByteBuffer> bytes_ GUARDED_BY(mutex_);
  std::vector<ByteBuffer> gathered_ GUARDED_BY(mutex_);
  std::size_t here_ GUARDED_BY(mutex_) = 0;
  std::size_t turn_ GUARDED_BY(mutex_) = 0;
  std::optional<Error> lost_ GUARDED_BY(mutex_);
};

}  // namespace longhaul::testing
