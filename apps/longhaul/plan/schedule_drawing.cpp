#include "apps/longhaul/plan/schedule_drawing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/longhaul/plan/plan_rows.h"
#include "longhaul/base/units.h"

namespace longhaul::apps {
namespace {

constexpr std::size_t kColumns = 72;  // of a bar
constexpr double kNothing = 1e-9;     // relative to a step's computing

// When each step of the period begins, and when the last one ends.
std::vector<Seconds> begins_of(const LayerCosts& costs, const LayerSchedule& schedule) {
  const std::size_t steps = schedule.steps.size();
  std::vector<std::optional<Seconds>> begins(steps + 1);
  begins[steps] = static_cast<double>(steps) * schedule.timeline.step_time;
  for (const LayerTimeline::Trip& trip : schedule.timeline.trips)
    begins[trip.step] = trip.ready - costs.layers()[trip.layer].ready;
  begins[0] = Seconds(0);
  std::vector<Seconds> all(steps + 1);
  for (std::size_t step = steps + 1; step-- > 0;)  // a step that sends nothing waits for nothing
    all[step] = begins[step] ? *begins[step] : all[step + 1] - costs.computing();
  return all;
}

// The name as a terminal can show it.
std::string plain(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char letter) { return letter < ' ' || letter == 0x7F; }, '?');
  return name;
}

// "a..d" for "a..b" to "c..d".
std::string range_name(const std::string& first, const std::string& last) {
  const std::size_t dots = last.rfind("..");
  return plain(first.substr(0, first.find(".."))) + ".." +
         plain(dots == std::string::npos ? last : last.substr(dots + 2));
}

// At most so many bytes, whole characters of UTF-8 only.
std::string shortened(std::string text, std::size_t columns) {
  if (text.size() <= columns) return text;
  while (columns > 0 && (static_cast<unsigned char>(text[columns]) & 0xC0U) == 0x80U) --columns;
  return text.substr(0, columns);
}

// Consecutive layers as "first..last". Leaves names out beyond `columns`.
std::string layer_names(const LayerProfile& parts, const std::vector<std::uint32_t>& layers,
                        std::size_t columns) {
  constexpr std::size_t kForTheRest = 16;  // ", and 999 more"
  std::string names;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    const std::string& first = parts.layers[layers[i]].name;
    const std::string name =
        end == i + 1 ? plain(first) : range_name(first, parts.layers[layers[end - 1]].name);
    const bool is_last = end == layers.size();
    if (!names.empty() && names.size() + name.size() + (is_last ? 2 : kForTheRest) > columns)
      return names + ", and " + std::to_string(layers.size() - i) + " more";
    names += (names.empty() ? "" : ", ") + name;
    if (names.size() + (is_last ? 0 : kForTheRest) > columns)
      names = shortened(names, columns - kForTheRest) + '~';
    i = end;
  }
  return names;
}

// Draws one schedule; all bars have the same scale.
class Drawing {
 public:
  Drawing(const LayerProfile& parts, const LayerLink& link, const LayerSchedule& schedule)
      : parts_(parts),
        link_(link),
        schedule_(schedule),
        costs_(parts, link),
        begins_(begins_of(costs_, schedule)) {
    Seconds longest{};
    for (std::size_t step = 0; step < schedule.steps.size(); ++step)
      longest = std::max(longest, begins_[step + 1] - begins_[step]);
    column_ = longest / static_cast<double>(kColumns);
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    const std::size_t steps = schedule_.steps.size();
    for (std::size_t first = 0; first < steps;) {
      std::size_t last = first;
      while (schedule_.delays.empty() && last + 1 < steps &&
             schedule_.steps[last + 1] == schedule_.steps[first])
        ++last;
      text += heading(first, last) + bars(first);
      first = last + 1;
    }
    return text + legend();
  }

 private:
  [[nodiscard]] std::string heading(std::size_t first, std::size_t last) const {
    const auto& layers = schedule_.steps[first];
    std::string head =
        first == last ? "step " + std::to_string(first + 1)
                      : "steps " + std::to_string(first + 1) + " to " + std::to_string(last + 1);
    if (layers.empty()) return head + ": no layer\n";
    double bytes = 0;
    for (const std::uint32_t layer : layers) bytes += parts_.layers[layer].bytes;
    const std::string size = ", " + size_text(bytes) + '\n';
    head += ": ";
    return head + layer_names(parts_, layers, kColumns + 12 - head.size() - size.size()) + size;
  }

  [[nodiscard]] std::string bars(std::size_t step) const {
    const std::string up = line_bar(step, [](const LayerTimeline::Trip& trip) {
      return std::pair{trip.up_begin, trip.up_end};
    });
    const std::string compute = "  compute |" + compute_bar(step) + "|\n";
    if (link_.is_one_way) return compute + "  line    |" + up + "|\n";
    const std::string down = line_bar(step, [this](const LayerTimeline::Trip& trip) {
      return std::pair{trip.back - costs_.layers()[trip.layer].down, trip.back};
    });
    return compute + "  up      |" + up + "|\n  down    |" + down + "|\n";
  }

  // Borders are rounded, so that many short stretches have together the length that they should.
  void paint(std::string& bar, std::size_t step, Seconds begin, Seconds end, char mark) const {
    const auto column_of = [&](Seconds instant) {
      const double columns = std::round((instant - begins_[step]) / column_);
      return static_cast<std::size_t>(std::clamp(columns, 0.0, static_cast<double>(kColumns)));
    };
    for (std::size_t i = column_of(begin); i < column_of(end); ++i) bar[i] = mark;
  }

  // A trip that ends after the period is also one of the period before, at this period's begin.
  template <typename Stretch>
  [[nodiscard]] std::string line_bar(std::size_t step, const Stretch& stretch) const {
    std::string bar(kColumns, ' ');
    const Seconds step_end = begins_[step + 1];
    for (const LayerTimeline::Trip& trip : schedule_.timeline.trips) {
      auto [begin, end] = stretch(trip);
      while (end > begins_[step]) {
        paint(bar, step, std::min(begin, step_end), std::min(end, step_end), '#');
        begin -= begins_.back();
        end -= begins_.back();
      }
    }
    return bar;
  }

  // Layers of this step that are back late, where the step itself waits for them.
  [[nodiscard]] std::vector<Seconds> backs_in(std::size_t step) const {
    std::vector<Seconds> backs(parts_.layers.size());
    if (link_.is_one_way || !schedule_.delays.empty()) return backs;
    for (const LayerTimeline::Trip& trip : schedule_.timeline.trips)
      if (trip.step == step) backs[trip.layer] = trip.back;
    return backs;
  }

  [[nodiscard]] std::string compute_bar(std::size_t step) const {
    std::string bar(kColumns, ' ');
    const Seconds end = begins_[step + 1];
    Seconds now = begins_[step] + parts_.backward();
    paint(bar, step, begins_[step], now, '<');
    const std::vector<Seconds> backs = backs_in(step);
    std::vector<std::pair<Seconds, Seconds>> forward;
    for (std::size_t layer = parts_.layers.size(); layer-- > 0;) {
      const Seconds begin = std::max(now, backs[layer]);
      forward.emplace_back(begin, begin + parts_.layers[layer].forward);
      now = forward.back().second;
    }
    const Seconds more = end - now;  // the forward pass waits for layers of earlier steps
    paint(bar, step, begins_[step] + parts_.backward(), end, '.');
    for (const auto& [from, to] : forward) paint(bar, step, from + more, to + more, '>');
    return bar;
  }

  [[nodiscard]] std::string legend() const {
    const bool waits = schedule_.timeline.exposed > kNothing * costs_.computing();
    return std::string("< backward, > forward") + (waits ? ", . waiting for layers" : "") +
           ", # a layer occupies the line; a column is " + to_string(column_) + '\n';
  }

  const LayerProfile& parts_;
  const LayerLink& link_;
  const LayerSchedule& schedule_;
  LayerCosts costs_;
  std::vector<Seconds> begins_;
  Seconds column_{};
};

}  // namespace

std::string schedule_drawing(const LayerProfile& parts, const LayerLink& link,
                             const LayerSchedule& schedule) {
  return Drawing(parts, link, schedule).text();
}

}  // namespace longhaul::apps
