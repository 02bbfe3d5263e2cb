// Which values a scenario key takes: how they are read, written, and described to people.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/units.h"
#include "longhaul/job/scenario_keys.h"

namespace longhaul {

template <typename T>
struct Domain {
  std::string expected;
  std::function<std::optional<T>(const RawValue&)> read;
  std::function<std::string(const T&)> show;  // as it would stand in a file
};

Domain<std::uint64_t> whole(std::uint64_t least, std::uint64_t most);

Domain<double> real_above(double least);
Domain<double> real_from(double least, double most = std::numeric_limits<double>::max());

Domain<double> ratio();  // in (0, 1]
Domain<Seconds> duration();
Domain<Seconds> positive_duration();
Domain<Seconds> duration_from(Seconds least);
Domain<Bandwidth> bandwidth();  // above 0
Domain<std::string> any_text(const std::string& expected);
Domain<std::string> codec_name();
Domain<std::string> one_of(const std::vector<std::string>& names);

// One of these names, for a value that is not a text.
template <typename T>
Domain<T> one_of(const std::vector<std::pair<std::string, T>>& named) {
  std::vector<std::string> names;
  std::ranges::transform(named, std::back_inserter(names), &std::pair<std::string, T>::first);
  const Domain<std::string> texts = one_of(names);
  return {.expected = texts.expected,
          .read = [=](const RawValue& raw) -> std::optional<T> {
            const std::optional<std::string> text = texts.read(raw);
            if (!text) return std::nullopt;
            return std::ranges::find(named, *text, &std::pair<std::string, T>::first)->second;
          },
          .show =
              [=](const T& value) {
                return texts.show(
                    std::ranges::find(named, value, &std::pair<std::string, T>::second)->first);
              }};
}

Domain<std::vector<std::string>> text_list(const std::string& expected);

}  // namespace longhaul
