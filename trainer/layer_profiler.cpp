#include "trainer/layer_profiler.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "longhaul/base/check.h"

namespace longhaul::trainer {
namespace {

constexpr double kBytesPerParameter = 4;

double median(std::vector<double> values) {
  LONGHAUL_CHECK(!values.empty());
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Calls with each module that has some of these elements.
template <typename Visit>
void visit_modules(const LayerTable& modules, std::size_t first, std::size_t count, Visit visit) {
  const auto after = std::ranges::upper_bound(modules, first, {}, &Layer::offset);
  for (auto i = static_cast<std::size_t>(after - modules.begin()) - 1;
       i < modules.size() && modules[i].offset < first + count; ++i) {
    visit(i);
  }
}

using ModuleStamps = std::vector<std::optional<TimePoint>>;

// The modules that have a stamp, the earliest first. In the forward pass the end of the table comes
// first where stamps are equal, in the backward pass its beginning.
std::vector<std::size_t> in_order(const ModuleStamps& stamps, bool is_forward) {
  std::vector<std::size_t> order(stamps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (is_forward) std::ranges::reverse(order);
  std::erase_if(order, [&](std::size_t i) { return !stamps[i]; });
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return *stamps[i]; });
  return order;
}

// From the first use of a module to that of the next one.
std::vector<Seconds> forward_times(const ModuleStamps& used, TimePoint forward_done) {
  std::vector<Seconds> times(used.size());
  TimePoint end = forward_done;
  const std::vector<std::size_t> order = in_order(used, true);
  for (std::size_t i = order.size(); i-- > 0;) {
    times[order[i]] = end - *used[order[i]];
    end = *used[order[i]];
  }
  return times;
}

// From the module that was ready before to this one.
std::vector<Seconds> backward_times(const ModuleStamps& ready, TimePoint forward_done) {
  std::vector<Seconds> times(ready.size());
  TimePoint begin = forward_done;
  for (const std::size_t i : in_order(ready, false)) {
    times[i] = *ready[i] - begin;
    begin = *ready[i];
  }
  return times;
}

}  // namespace

LayerTable modules_of(const LayerTable& tensors) {
  LayerTable modules;
  std::set<std::string> names;
  std::string last;
  for (const Layer& tensor : tensors) {
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    if (modules.empty() || module != last) {
      const bool is_new = names.insert(module).second;
      modules.push_back({.name = is_new ? module : tensor.name, .offset = tensor.offset});
      names.insert(modules.back().name);
    }
    modules.back().count += tensor.count;
    last = module;
  }
  return modules;
}

struct LayerProfiler::Stamps {
  TimePoint start{};
  ModuleStamps used{};  // first use of a module
  std::optional<TimePoint> forward_done{};
  ModuleStamps ready{};  // its last gradient
  TimePoint end{};
};

LayerProfiler::LayerProfiler(Learner& learner, const LayerTable& tensors, const Clock& clock)
    : learner_(learner),
      clock_(clock),
      modules_(modules_of(tensors)),
      forward_s_(modules_.size()),
      backward_s_(modules_.size()) {}

void LayerProfiler::warm_up() {
  (void)stamped_step();
  (void)plain_step();
}

// The order changes, so that a machine that becomes slower or faster favours neither.
void LayerProfiler::step() {
  const bool plain_first = step_s_.size() % 2 == 1;
  if (plain_first) step_s_.push_back(plain_step().count());
  keep(stamped_step());
  if (!plain_first) step_s_.push_back(plain_step().count());
}

Seconds LayerProfiler::plain_step() {
  const TimePoint start = clock_.now();
  (void)learner_.compute_gradient();
  return clock_.now() - start;
}

LayerProfiler::Stamps LayerProfiler::stamped_step() {
  Stamps stamps;
  stamps.used.resize(modules_.size());
  stamps.ready.resize(modules_.size());
  LayerWatch watch;
  watch.before_use = [&](std::size_t first, std::size_t count) {
    const TimePoint now = clock_.now();
    visit_modules(modules_, first, count, [&](std::size_t i) {
      if (!stamps.used[i]) stamps.used[i] = now;
    });
  };
  watch.forward_done = [&] { stamps.forward_done = clock_.now(); };
  watch.ready = [&](std::size_t first, std::size_t count) {
    const TimePoint now = clock_.now();
    visit_modules(modules_, first, count, [&](std::size_t i) { stamps.ready[i] = now; });
  };
  stamps.start = clock_.now();
  (void)learner_.compute_gradient_by_layers(watch);
  stamps.end = clock_.now();
  return stamps;
}

void LayerProfiler::keep(const Stamps& stamps) {
  LONGHAUL_CHECK(stamps.forward_done.has_value());
  const std::vector<Seconds> forward = forward_times(stamps.used, *stamps.forward_done);
  const std::vector<Seconds> backward = backward_times(stamps.ready, *stamps.forward_done);
  const Seconds step = stamps.end - stamps.start;
  Seconds in_layers{};
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    forward_s_[i].push_back(forward[i].count());
    backward_s_[i].push_back(backward[i].count());
    in_layers += forward[i] + backward[i];
  }
  step_with_hooks_s_.push_back(step.count());
  overhead_shares_.push_back(step > Seconds(0) ? std::max(0.0, 1 - in_layers / step) : 0);
}

LayerProfile LayerProfiler::profile(std::size_t batch) const {
  LayerProfile profile{.batch = batch, .overhead_share = median(overhead_shares_)};
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    profile.layers.push_back(
        {.name = modules_[i].name,
         .forward = Seconds(median(forward_s_[i])),
         .backward = Seconds(median(backward_s_[i])),
         .bytes = kBytesPerParameter * static_cast<double>(modules_[i].count)});
  }
  return profile;
}

Seconds LayerProfiler::step_time() const { return Seconds(median(step_s_)); }
Seconds LayerProfiler::step_time_with_hooks() const { return Seconds(median(step_with_hooks_s_)); }

}  // namespace longhaul::trainer
