#include "trainer/text_data.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "trainer/data_file.h"

namespace longhaul::trainer {
namespace {

using std::filesystem::path;

constexpr std::size_t kTextLimit = std::size_t{1} << 30U;
constexpr std::size_t kMostCharacters = 65'536;
constexpr std::size_t kSections = 10;

// Beside the program (build/…/bin/longhaul-torch → build/…/share/longhaul), or where packages are
// installed.
Result<path> find_default_text() {
  std::error_code unreadable;
  const path program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::array<path, 3> places{program.parent_path().parent_path() / "share/longhaul",
                                   "/usr/local/share/longhaul", "/usr/share/longhaul"};
  return find_data_file(places, "bible-kjv.txt",
                        "install the Debian packages bible-kjv and bible-kjv-text and build again, "
                        "or name a text file (lab: --set data.path=FILE, train: --data FILE)");
}

// One UTF-8 character at the front of `bytes`, or nothing if there is none; its length goes to
// `length`.
std::optional<char32_t> decode_one(std::span<const std::uint8_t> bytes, std::size_t& length) {
  const std::uint8_t lead = bytes[0];
  length = lead < 0x80   ? 1
           : lead < 0xC2 ? 0
           : lead < 0xE0 ? 2
           : lead < 0xF0 ? 3
           : lead < 0xF5 ? 4
                         : 0;
  if (length == 0 || length > bytes.size()) return std::nullopt;
  char32_t character = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((bytes[i] & 0xC0U) != 0x80) return std::nullopt;
    character = (character << 6U) | (bytes[i] & 0x3FU);
  }
  const bool is_overlong =
      (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool is_surrogate = character >= 0xD800 && character < 0xE000;
  if (is_overlong || is_surrogate || character > 0x10FFFF) return std::nullopt;
  return character;
}

Result<std::vector<char32_t>> decode_utf8(std::span<const std::uint8_t> bytes,
                                          const DataFile& file) {
  std::vector<char32_t> text;
  text.reserve(bytes.size());
  for (std::size_t at = 0, length = 0; at < bytes.size(); at += length) {
    const auto character = decode_one(bytes.subspan(at), length);
    if (!character) {
      return file.damaged("not UTF-8 at byte " + std::to_string(at) +
                          "; convert the file to UTF-8 first");
    }
    text.push_back(*character);
  }
  return text;
}

std::vector<char32_t> distinct(std::vector<char32_t> text) {
  std::ranges::sort(text);
  text.erase(std::unique(text.begin(), text.end()), text.end());
  return text;
}

void keep_parts(TextData& data, const std::vector<std::uint16_t>& tokens) {
  const auto cut = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() / 10 * 9);
  data.train.assign(tokens.begin(), cut);
  data.test.assign(cut, tokens.end());
}

Result<TextData> number_characters(std::span<const std::uint8_t> bytes, const DataFile& file) {
  const auto text = LONGHAUL_TRY(decode_utf8(bytes, file));
  TextData data;
  data.characters = distinct(text);
  if (data.characters.size() > kMostCharacters) {
    return file.damaged(std::to_string(data.characters.size()) + " different characters; at most " +
                        std::to_string(kMostCharacters) + " are accepted");
  }
  std::vector<std::uint16_t> tokens(text.size());
  std::ranges::transform(text, tokens.begin(), [&](char32_t character) {
    const auto at = std::ranges::lower_bound(data.characters, character);
    return static_cast<std::uint16_t>(at - data.characters.begin());
  });
  keep_parts(data, tokens);
  return data;
}

Result<TextData> read_text(const path& file) {
  auto opened = LONGHAUL_TRY(DataFile::open(file));
  const auto bytes = LONGHAUL_TRY(opened.read_rest(kTextLimit));
  if (bytes.empty()) return opened.damaged("empty");
  return number_characters(bytes, opened);
}

}  // namespace

Result<TextData> load_text(const path& file) {
  std::error_code unreadable;
  if (!file.empty() && !std::filesystem::is_regular_file(file, unreadable)) {
    return Error{ErrorCode::kNotFound, "data text: no file " + file.string()};
  }
  const auto found = file.empty() ? find_default_text() : Result<path>(file);
  if (!found) return Error(found.error()).within("data text");
  auto data = read_text(*found);
  if (!data) return std::move(data).error().within("data text");
  return data;
}

std::size_t count_windows(std::size_t tokens, std::size_t context) {
  return tokens == 0 ? 0 : (tokens - 1) / context;
}

std::vector<std::uint8_t> window_labels(std::size_t windows) {
  std::vector<std::uint8_t> labels(windows);
  for (std::size_t i = 0; i < windows; ++i) {
    labels[i] = static_cast<std::uint8_t>(i * kSections / windows);
  }
  return labels;
}

}  // namespace longhaul::trainer
