#include "trainer/batch_sampler.h"

#include <utility>

#include "longhaul/base/check.h"

namespace longhaul::trainer {

BatchSampler::BatchSampler(std::vector<std::uint32_t> share, std::size_t batch, Random random)
    : share_(std::move(share)), batch_(batch), used_(share_.size()), random_(random) {
  LONGHAUL_CHECK(!share_.empty());
  LONGHAUL_CHECK_GT(batch, 0U);
}

std::span<const std::uint32_t> BatchSampler::next() {
  for (std::uint32_t& sample : batch_) {
    if (used_ == share_.size()) {
      shuffle(std::span(share_), random_);
      used_ = 0;
    }
    sample = share_[used_++];
  }
  return batch_;
}

void BatchSampler::skip(std::uint64_t batches) {
  for (; batches > 0; --batches) next();
}

}  // namespace longhaul::trainer
