#include <charconv>
#include <sstream>

#include "longhaul/codec/codec.h"
#include "longhaul/lab/run.h"
#include "longhaul/sync/recipe.h"

namespace longhaul::lab {
namespace {

Error bad(const std::string& text, const std::string& expected) {
  return Error{ErrorCode::kInvalidArgument, "recipe " + text + ": expected " + expected};
}

template <typename Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

Status apply(const std::string& whole, const std::string& key, const std::string& value,
             RecipeSettings& settings) {
  double number = 0;
  int count = 0;
  if (key == "keep_ratio") {
    const Result<double> ratio = parse_ratio(value);
    if (!ratio.ok() || *ratio <= 0) return bad(whole, "keep_ratio above 0 and at most 1");
    settings.keep_ratio = *ratio;
  } else if (key == "delay_steps") {
    if (!read_number(value, count) || count < 0)
      return bad(whole, "delay_steps as a whole number from 0");
    settings.delay_steps = count;
  } else if (key == "period_steps") {
    if (!read_number(value, count) || count != 1) return bad(whole, "period_steps = 1");
    settings.period_steps = count;
  } else if (key == "codec") {
    if (!parse_codec(value).ok()) return bad(whole, "a codec such as top_k/bf16");
    settings.codec = value;
  } else if (key == "lr") {
    if (!read_number(value, number) || !(number > 0)) return bad(whole, "lr above 0");
    settings.lr = number;
  } else {
    return bad(whole, "keep_ratio, delay_steps, period_steps, codec or lr, got \"" + key + '"');
  }
  return Done{};
}

}  // namespace

Result<RecipeChoice> parse_recipe_choice(const std::string& text) {
  RecipeChoice choice{.text = text};
  std::istringstream parts(text);
  std::getline(parts, choice.name, ':');
  const Result<Recipe> row = find_recipe(choice.name);
  if (!row.ok()) return row.error();
  for (std::string part; std::getline(parts, part, ':');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return bad(text, "key=value after each colon");
    const Status applied =
        apply(text, part.substr(0, equals), part.substr(equals + 1), choice.settings);
    if (!applied.ok()) return applied.error();
  }
  return choice;
}

}  // namespace longhaul::lab
