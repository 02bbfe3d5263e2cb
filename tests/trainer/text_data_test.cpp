#include "trainer/text_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/trainer/data_files.h"

namespace longhaul::trainer {
namespace {

using testing::HasSubstr;

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST(TextData, NumbersTheDistinctCharactersInOrder) {
  const TestDirectory directory;
  const auto file = directory.write("text", bytes_of("b\u00E4abb\u20ACaaab"));  // ten characters
  const auto data = load_text(file);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->characters, (std::vector<char32_t>{U'a', U'b', U'\u00E4', U'\u20AC'}));
  EXPECT_EQ(data->train, (std::vector<std::uint16_t>{1, 2, 0, 1, 1, 3, 0, 0, 0}));
  EXPECT_EQ(data->test, (std::vector<std::uint16_t>{1}));
}

TEST(TextData, RefusesWhatIsNotUtf8AndSaysWhere) {
  const TestDirectory directory;
  for (const std::string_view bad : {"\xFF", "\x80", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80",
                                     "\xF4\x90\x80\x80", "\xE0\x80\xAF", "\xF8\x88\x80\x80"}) {
    const auto file = directory.write("text", bytes_of("abc" + std::string(bad)));
    const auto data = load_text(file);
    ASSERT_FALSE(data.ok());
    EXPECT_THAT(data.error().message, HasSubstr("not UTF-8 at byte 3"));
  }
}

TEST(TextData, RefusesMissingAndEmptyFiles) {
  const TestDirectory directory;
  EXPECT_EQ(load_text(directory.path() / "none").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(load_text(directory.write("empty", {})).error().message, HasSubstr("empty"));
}

TEST(TextData, WindowsNeverReadPastTheEnd) {
  for (std::size_t tokens = 0; tokens < 40; ++tokens) {
    const std::size_t windows = count_windows(tokens, 8);
    EXPECT_TRUE(windows == 0 || windows * 8 + 1 <= tokens);
    EXPECT_GT((windows + 1) * 8 + 1, tokens);
  }
}

TEST(TextData, WindowsAreLabelledByTenthOfTheText) {
  const auto labels = window_labels(25);
  EXPECT_TRUE(std::ranges::is_sorted(labels));
  EXPECT_EQ(labels.front(), 0);
  EXPECT_EQ(labels.back(), 9);
}

}  // namespace
}  // namespace longhaul::trainer
