#include "trainer/use_watch.h"

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "longhaul/base/check.h"

namespace longhaul::trainer {
namespace {

using BeforeUse = std::function<void(std::size_t first, std::size_t count)>;

class UseWatch;

// Torch's callbacks are plain functions, so they find their watch by thread.
thread_local UseWatch* watch_of_thread = nullptr;

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation);

// Watches the operations that this thread calls while it lives; operations inside other operations
// count too.
class UseWatch {
 public:
  UseWatch(const LayerTable& layers, const torch::Tensor& values, const BeforeUse& before_use)
      : layers_(layers), values_(values), before_use_(before_use), told_(layers.size(), false) {
    LONGHAUL_CHECK(watch_of_thread == nullptr);
    watch_of_thread = this;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(before_operation)
                                             .needsInputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~UseWatch() {
    at::removeCallback(handle_);
    watch_of_thread = nullptr;
  }
  UseWatch(const UseWatch&) = delete;
  UseWatch& operator=(const UseWatch&) = delete;

  // Torch swallows exceptions of its callbacks, so the first one is kept.
  void note(const c10::IValue& input) {
    if (failure_) return;
    try {
      if (input.isTensor()) {
        note(input.toTensor());
      } else if (input.isList()) {
        for (const c10::IValue& element : input.toListRef()) note(element);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void note(const torch::Tensor& tensor) {
    if (!tensor.has_storage() || tensor.numel() == 0 || !tensor.is_alias_of(values_)) return;
    std::int64_t last = tensor.storage_offset();
    for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
    tell(static_cast<std::size_t>(tensor.storage_offset()), static_cast<std::size_t>(last));
  }

  // Tells of the layers that have elements from `first` to `last`.
  void tell(std::size_t first, std::size_t last) {
    const auto after = std::ranges::upper_bound(layers_, first, {}, &Layer::offset);
    for (auto i = static_cast<std::size_t>(after - layers_.begin()) - 1;
         i < layers_.size() && layers_[i].offset <= last; ++i) {
      if (told_[i]) continue;
      told_[i] = true;  // before the call, which may use torch
      before_use_(layers_[i].offset, layers_[i].count);
    }
  }

  const LayerTable& layers_;
  const torch::Tensor& values_;
  const BeforeUse& before_use_;
  std::vector<bool> told_;
  std::exception_ptr failure_;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation) {
  for (const c10::IValue& input : operation.inputs()) watch_of_thread->note(input);
  return nullptr;
}

}  // namespace

void watch_uses(const LayerTable& layers, const torch::Tensor& values,
                const std::function<void()>& forward, const BeforeUse& before_use) {
  UseWatch watch(layers, values, before_use);
  forward();
  watch.rethrow();
}

}  // namespace longhaul::trainer
