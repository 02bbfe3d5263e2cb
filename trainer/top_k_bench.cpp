#include "trainer/top_k_bench.h"

#include <torch/torch.h>

#include <chrono>

namespace longhaul::trainer {

std::vector<double> torch_top_k_seconds(std::size_t elements, std::size_t keep,
                                        std::size_t repetitions) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < repetitions; ++i) {
    const torch::Tensor update = torch::randn({static_cast<std::int64_t>(elements)});
    const auto start = std::chrono::steady_clock::now();
    const auto [magnitudes, indices] =
        torch::topk(update.abs(), static_cast<std::int64_t>(keep), 0, true, false);
    const torch::Tensor values = update.gather(0, indices);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

}  // namespace longhaul::trainer
