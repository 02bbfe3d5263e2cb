// Payloads as version 1 of the wire format has them, kept as files: NAME.bin is the payload,
// NAME.values what it decodes to, as lines "index bits" for each element that is not zero. The
// files are never edited, only added: LONGHAUL_REWRITE_GOLDEN=1 writes those that are missing and
// leaves the others alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "longhaul/base/workers.h"
#include "longhaul/codec/codec.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

const std::filesystem::path kDirectory = "tests/codec/golden/v1";  // CTest runs in the root

struct Golden {
  std::string codec;
  std::size_t elements = 0;
  double keep_ratio = 1.0;

  [[nodiscard]] std::string name() const {
    std::string text = codec + '_' + std::to_string(elements);
    std::ranges::replace(text, '/', '_');
    return text;
  }
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name(); }

std::vector<Golden> all_goldens() {
  std::vector<Golden> goldens{
      {.codec = "dense/fp32", .elements = 0},
      {.codec = "dense/fp32", .elements = 37},
      {.codec = "dense/bf16", .elements = 37},
      {.codec = "sign", .elements = 520},
      {.codec = "top_k/bf16", .elements = 0, .keep_ratio = 0.1},
      {.codec = "top_k/bf16", .elements = 1, .keep_ratio = 0.1},
      {.codec = "chunk_top_k/2bit", .elements = 9000, .keep_ratio = 1.0 / 64},
      {.codec = "threshold/bf16", .elements = 700},
      {.codec = "low_rank/fp32", .elements = 245},
      {.codec = "low_rank/bf16", .elements = 245},
  };
  for (const std::string format : {"8bit", "4bit", "2bit", "1bit"}) {
    goldens.push_back({.codec = "dense/" + format, .elements = 520});
  }
  for (const std::string format : {"fp32", "bf16", "8bit", "4bit", "2bit", "1bit"}) {
    goldens.push_back({.codec = "top_k/" + format, .elements = 2000, .keep_ratio = 0.03});
    goldens.push_back({.codec = "random_k/" + format, .elements = 65600, .keep_ratio = 0.001});
    goldens.push_back({.codec = "cocktail/" + format, .elements = 65600, .keep_ratio = 0.001});
  }
  goldens.push_back({.codec = "top_k/4bit", .elements = 140000, .keep_ratio = 0.005});
  return goldens;
}

// Heavy-tailed numbers around 0.001 from splitmix64, by arithmetic that every machine rounds alike.
std::vector<float> golden_input(std::size_t elements) {
  std::vector<float> values(elements);
  std::uint64_t state = 0x10A9;
  for (float& value : values) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    const auto uniform =
        static_cast<float>(static_cast<std::int32_t>((x ^ (x >> 31)) >> 32)) * 0x1p-31F;
    value = uniform * uniform * uniform * 0x1p-8F;
  }
  return values;
}

// A matrix and a vector for low rank; the other codecs do not look.
LayerTable golden_layers() {
  return {{.name = "matrix", .offset = 0, .count = 240, .shape = {12, 20}},
          {.name = "bias", .offset = 240, .count = 5, .shape = {5}}};
}

ByteBuffer encode(const Golden& golden) {
  Workers workers;
  std::vector<float> residual = golden_input(golden.elements);
  const Result<CodecOptions> spec = parse_codec(golden.codec);
  return make_codec(spec.value(), golden_layers(), workers)
      ->take({.residual = residual, .keep_ratio = golden.keep_ratio, .seed = 0x5EED});
}

std::string as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The lines of NAME.values.
std::string decoded_text(ByteView payload, std::size_t elements) {
  const Result<PayloadView> view = PayloadView::parse(payload, elements);
  if (!view.ok()) return view.error().message;
  std::vector<float> values(elements);
  add(*view, 1.0F, values);
  std::ostringstream text;
  for (std::size_t i = 0; i < elements; ++i) {
    if (values[i] == 0.0F) continue;
    text << std::dec << i << ' ' << std::hex << std::setw(8) << std::setfill('0')
         << std::bit_cast<std::uint32_t>(values[i]) << '\n';
  }
  return text.str();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path << " is missing: LONGHAUL_REWRITE_GOLDEN=1 writes it";
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_if_missing(const std::filesystem::path& path, const std::string& content) {
  if (std::filesystem::exists(path)) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

class GoldenPayload : public ::testing::TestWithParam<Golden> {
 protected:
  void SetUp() override {
    const char* const rewrite = std::getenv("LONGHAUL_REWRITE_GOLDEN");
    if (rewrite == nullptr || std::string_view(rewrite) != "1") return;
    const ByteBuffer payload = encode(GetParam());
    write_if_missing(file(".bin"), as_text(payload));
    write_if_missing(file(".values"), decoded_text(payload, GetParam().elements));
  }

  [[nodiscard]] static std::filesystem::path file(const char* ending) {
    return kDirectory / (GetParam().name() + ending);
  }
};

TEST_P(GoldenPayload, IsWhatTheCodecWrites) {
  const std::string recorded = read_file(file(".bin"));
  EXPECT_LE(recorded.size(), 2048U);
  EXPECT_TRUE(as_text(encode(GetParam())) == recorded)
      << "the codec writes other bytes than " << file(".bin");
}

TEST_P(GoldenPayload, DecodesToTheRecordedValues) {
  const std::string payload = read_file(file(".bin"));
  const std::string text = decoded_text(std::as_bytes(std::span(payload)), GetParam().elements);
  EXPECT_TRUE(text == read_file(file(".values")))
      << "the decoder reads other values than " << file(".values");
}

INSTANTIATE_TEST_SUITE_P(V1, GoldenPayload, ::testing::ValuesIn(all_goldens()),
                         [](const auto& golden) { return golden.param.name(); });

// The payload that docs/wire_format.md takes apart byte by byte.
TEST(WireFormat, ReadsTheExampleOfItsDescription) {
  constexpr std::array<std::uint8_t, 49> kExample{
      0x48, 0x4C, 0x55, 0x50, 0x01, 0x02, 0x01, 0x00, 0x64, 0x00, 0x00, 0x00, 0x00,
      0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xC0, 0x48,
      0x8C, 0x6B, 0x7A, 0x0B, 0x3C, 0x62, 0x05, 0x03, 0x02, 0x32, 0x61, 0x33, 0x04,
      0x80, 0x3F, 0x00, 0xC0, 0x00, 0x3F, 0x20, 0x3E, 0xC0, 0xBF};
  const Result<PayloadView> view = PayloadView::parse(std::as_bytes(std::span(kExample)), 100);
  ASSERT_TRUE(view.ok()) << view.error().message;
  TileEntries entries;
  view->entries_of(0, entries);
  EXPECT_THAT(entries.positions, ::testing::ElementsAre(2, 9, 30, 31, 70));
  EXPECT_THAT(entries.values, ::testing::ElementsAre(1.0F, -2.0F, 0.5F, 0.15625F, -1.5F));
}

TEST(GoldenFiles, AllBelongToACase) {
  std::set<std::string> names;
  for (const Golden& golden : all_goldens()) names.insert(golden.name());
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory)) {
    EXPECT_TRUE(names.contains(entry.path().stem().string())) << entry.path();
  }
}

}  // namespace
}  // namespace longhaul
