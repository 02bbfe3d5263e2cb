// Named tensors, bytes and values as a safetensors file: nothing is lost, and nothing that comes
// from outside is believed.
#include "longhaul/base/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "longhaul/base/file.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// CTest runs in the root.
constexpr const char* kGolden = "tests/base/golden/v2/state.safetensors";
constexpr const char* kGoldenOfFormat1 = "tests/base/golden/v1/state.safetensors";

State sample_state() {
  State state;
  state.tensors["shared"] = {1.0F, -2.5F, 1e-40F, 0.1F};
  state.tensors["residual"] = {};
  state.blobs["message.7"] = {std::byte{0}, std::byte{255}, std::byte{'{'}};
  state.blobs["nothing"] = {};
  state.values = {{"step", 12}, {"keep_ratio", 0.1}, {"merge", "late \"δ\""}, {"rounds", {7, 8}}};
  return state;
}

ByteBuffer file_of(std::string_view header, std::size_t data_bytes) {
  ByteWriter out;
  out.u64(header.size());
  out.bytes(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < data_bytes; ++i) out.u8(static_cast<std::uint8_t>(i));
  return std::move(out).release();
}

std::string refusal_of(std::string_view header, std::size_t data_bytes) {
  const Result<State> state = state_from_safetensors(file_of(header, data_bytes));
  if (state.ok()) return "accepted";
  EXPECT_EQ(state.error().code, ErrorCode::kCorruptPayload);
  return state.error().message;
}

TEST(State, ComesBackAsItWas) {
  const State state = sample_state();
  const Result<State> again = state_from_bytes(to_bytes(state));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, state);
  EXPECT_EQ(state_from_bytes(to_bytes({})).value(), State{});
}

TEST(State, KeepsEveryBitOfFloatsAndDoubles) {
  State state;
  std::mt19937 random(1);
  std::vector<float>& bits = state.tensors["bits"];
  for (int i = 0; i < 1000; ++i)
    bits.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  state.values["third"] = 1.0 / 3;
  state.values["tiny"] = std::numeric_limits<double>::denorm_min();
  const State again = state_from_bytes(to_bytes(state)).value();
  for (std::size_t i = 0; i < bits.size(); ++i) {  // with those that are NaN
    EXPECT_EQ(std::bit_cast<std::uint32_t>(again.tensors.at("bits")[i]),
              std::bit_cast<std::uint32_t>(bits[i]));
  }
  EXPECT_EQ(again.value<double>("third").value(), 1.0 / 3);
  EXPECT_EQ(again.value<double>("tiny").value(), std::numeric_limits<double>::denorm_min());
}

// tests/base/safetensors_reference.py reads the golden file, too. It is never edited: another
// format gets a file of its own.
TEST(State, IsWrittenAsTheGoldenFile) {
  const Result<ByteBuffer> golden = read_file(kGolden, 1 << 20);
  ASSERT_TRUE(golden.ok()) << golden.error().message;
  EXPECT_EQ(to_bytes(sample_state()), *golden);
  EXPECT_EQ(state_from_bytes(*golden).value(), sample_state());
}

TEST(State, OfAnotherFormatIsRefusedWithASentence) {
  const ByteBuffer older = read_file(kGoldenOfFormat1, 1 << 20).value();
  EXPECT_THAT(state_from_bytes(older).error().message,
              HasSubstr("written by an older Longhaul, format 1; this one reads format 2"));
  EXPECT_TRUE(state_from_safetensors(older).ok()) << "models that it exported stay readable";
  EXPECT_THAT(state_from_bytes(file_of("{}", 0)).error().message,
              HasSubstr("not a file of Longhaul"));
}

// The weakest damage that there is, everywhere in the file.
TEST(State, EveryFlippedBitIsNoticed) {
  ByteBuffer bytes = to_bytes(sample_state());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    const Result<State> state = state_from_bytes(bytes);
    ASSERT_FALSE(state.ok()) << bit;
    ASSERT_THAT(state.error().message, HasSubstr("damaged")) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
  EXPECT_TRUE(state_from_bytes(bytes).ok());
}

TEST(State, HasTheMarkThatItsFilesAreKnownBy) {
  const ByteBuffer bytes = to_bytes(State{});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(text.find(kStateMark), std::string::npos);
}

TEST(State, AlignsItsTensorsInTheFile) {
  State state;
  for (const std::string name : {"a", "ab", "abc", "abcd"}) {
    state.tensors[name] = {1};
    EXPECT_EQ(load_le<std::uint64_t>(to_bytes(state).data()) % 8, 0U);
  }
}

TEST(State, TensorsHaveTheShapesThatOthersExpect) {
  State state;
  state.tensors["matrix"] = {1, 2, 3, 4, 5, 6};
  state.tensors["vector"] = {7, 8};
  const ByteBuffer bytes = to_bytes(state, {{"matrix", {2, 3}}});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(text.find("\"shape\":[2,3]"), std::string::npos);
  EXPECT_NE(text.find("\"shape\":[2]"), std::string::npos);
  EXPECT_EQ(state_from_bytes(bytes).value(), state);
  EXPECT_THROW((void)to_bytes(state, {{"matrix", {2, 2}}}), std::logic_error);
}

TEST(State, RefusesNamesThatComeTwiceAsOurBug) {
  State state;
  state.tensors["x"] = {};
  state.blobs["x"] = {};
  EXPECT_THROW(to_bytes(state), std::logic_error);
  state = {};
  state.tensors["__metadata__"] = {};
  EXPECT_THROW(to_bytes(state), std::logic_error);
}

TEST(State, ReadsFilesOfOthers) {
  const State state =
      state_from_safetensors(
          file_of(
              R"({"__metadata__":{"format":"pt"},"w":{"shape":[2,1],"dtype":"F32",)"
              R"("data_offsets":[2,10]},"n":{"shape":[0,9],"dtype":"F32","data_offsets":[2,2]},)"
              R"("b":{"shape":[2],"dtype":"U8","data_offsets":[0,2]},)"
              R"("one":{"shape":[],"dtype":"U8","data_offsets":[10,11]}} )",
              11))
          .value();
  EXPECT_EQ(state.tensors.at("w").size(), 2U);
  EXPECT_EQ(state.tensors.at("n").size(), 0U);
  EXPECT_EQ(state.blobs.at("b").size(), 2U);
  EXPECT_EQ(state.blobs.at("one").size(), 1U);
  EXPECT_TRUE(state.values.empty());
}

TEST(State, RefusesHeadersThatAreNoHeaders) {
  EXPECT_THAT(refusal_of("", 0), HasSubstr("header: not a JSON object"));
  EXPECT_THAT(refusal_of("[]", 0), HasSubstr("header: not a JSON object"));
  EXPECT_THAT(refusal_of(" {}", 0), HasSubstr("header: not a JSON object"));
  EXPECT_THAT(refusal_of("{", 0), HasSubstr("header: not a JSON object"));
  EXPECT_THAT(refusal_of("{}{}", 0), HasSubstr("header: not a JSON object"));
  EXPECT_THAT(refusal_of(R"({"a":{},"a":{}})", 0), HasSubstr(R"("a" comes twice)"));
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"U8","dtype":"U8"}})", 0),
              HasSubstr(R"("dtype" comes twice)"));
  EXPECT_THAT(refusal_of(R"({"a":[[[[0]]]]})", 0), HasSubstr("nested too deep"));
  EXPECT_THAT(refusal_of(R"({"a":)" + std::string(300'000, '['), 0), HasSubstr("nested too deep"));
  EXPECT_THAT(refusal_of(R"({"a":)" + std::string(300'000, '{'), 0), HasSubstr("header"));
}

TEST(State, RefusesEntriesThatAreNoTensors) {
  const auto refusal = [](const std::string& entry, std::size_t bytes) {
    return refusal_of(R"({"w":)" + entry + "}", bytes);
  };
  const std::string expected = "tensor \"w\": expected a dtype, a shape and two data_offsets";
  for (const char* entry : {"7", "{}", R"({"dtype":"U8","shape":[1]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0]})",
                            R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,1]})",
                            R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})",
                            R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})",
                            R"({"dtype":8,"shape":[1],"data_offsets":[0,1]})"}) {
    EXPECT_THAT(refusal(entry, 1), HasSubstr(expected)) << entry;
  }
  EXPECT_THAT(refusal(R"({"dtype":"F16","shape":[1],"data_offsets":[0,2]})", 2),
              HasSubstr("expected dtype F32 or U8, got \"F16\""));
}

TEST(State, RefusesOffsetsThatDoNotFit) {
  const auto refusal = [](const std::string& shape, const std::string& offsets) {
    return refusal_of(
        R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 8);
  };
  EXPECT_EQ(refusal("[2]", "[0,8]"), "accepted");
  EXPECT_THAT(refusal("[3]", "[0,12]"), HasSubstr("outside of the data"));
  EXPECT_THAT(refusal("[2]", "[8,0]"), HasSubstr("outside of the data"));
  EXPECT_THAT(refusal("[2]", "[0,18446744073709551615]"), HasSubstr("outside of the data"));
  EXPECT_THAT(refusal("[1]", "[0,8]"), HasSubstr("do not fit together"));
  EXPECT_THAT(refusal("[4294967296,4294967296]", "[0,0]"), HasSubstr("do not fit together"));
  EXPECT_THAT(refusal("[4611686018427387906]", "[0,8]"), HasSubstr("do not fit together"));
  EXPECT_THAT(refusal("[1]", "[0,4]"), HasSubstr("data that no tensor covers"));
  EXPECT_THAT(refusal("[1]", "[4,8]"), HasSubstr("a gap before it"));
}

TEST(State, RefusesTensorsThatOverlap) {
  EXPECT_THAT(refusal_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         3),
              HasSubstr("tensor \"b\": overlaps another"));
}

TEST(State, RefusesMetadataThatIsNotOurs) {
  const auto refusal = [](const std::string& metadata) {
    return refusal_of(R"({"__metadata__":)" + metadata + "}", 0);
  };
  EXPECT_THAT(refusal("7"), HasSubstr("__metadata__: expected an object of strings"));
  EXPECT_THAT(refusal(R"({"a":7})"), HasSubstr("__metadata__: expected an object of strings"));
  EXPECT_THAT(refusal(R"({"longhaul":"7"})"), HasSubstr("__metadata__: not a JSON object"));
  EXPECT_THAT(refusal(R"({"longhaul":"{\"a\":1e999}"})"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(R"({"longhaul":"{\"a\":1,\"a\":1}"})"), HasSubstr("comes twice"));
}

TEST(State, RefusesLengthsBeyondTheFileOrTheLimit) {
  const ByteBuffer whole = to_bytes(sample_state());
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(state_from_bytes(ByteView(whole).first(length)).ok()) << length;
  ByteBuffer longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(state_from_bytes(longer).ok());
  ByteBuffer foreign = file_of("{}", 0);
  store_le<std::uint64_t>(foreign.data(), kMostStateHeaderBytes + 1);
  EXPECT_THAT(state_from_safetensors(foreign).error().message,
              HasSubstr("expected at most 1048576"));
  store_le<std::uint64_t>(foreign.data(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(state_from_safetensors(foreign).ok());
}

TEST(State, ReadersAreToldWhatIsMissingOrWrong) {
  const State state = sample_state();
  EXPECT_EQ(state.tensor("shared", 4)->size(), 4U);
  EXPECT_THAT(state.tensor("shared", 5).error().message,
              HasSubstr("\"shared\": expected 5 elements, got 4"));
  EXPECT_THAT(state.tensor("velocity", 5).error().message, HasSubstr("no tensor \"velocity\""));
  EXPECT_EQ(state.blob("message.7")->size(), 3U);
  EXPECT_THAT(state.blob("shared").error().message, HasSubstr("no bytes \"shared\""));
  EXPECT_EQ(state.value<std::uint64_t>("step").value(), 12U);
  EXPECT_EQ(state.value<double>("step").value(), 12.0);
  EXPECT_EQ(state.value<std::vector<std::uint64_t>>("rounds").value(),
            (std::vector<std::uint64_t>{7, 8}));
  EXPECT_THAT(state.value<std::uint64_t>("keep_ratio").error().message,
              HasSubstr("no value of the right kind \"keep_ratio\""));
  EXPECT_FALSE(state.value<std::string>("rounds").ok());
  EXPECT_FALSE(state.value<std::vector<std::string>>("rounds").ok());
  EXPECT_FALSE(state.value<std::vector<double>>("step").ok());
  EXPECT_THAT(state.value<std::string>("plan").error().message, HasSubstr("no value \"plan\""));
}

TEST(State, ARopeHasTheSameBytesWithoutACopyOfTheTensors) {
  auto state = std::make_shared<State>();
  state->tensors["shared"] = {1.0F, -2.0F, 0.5F};
  state->tensors["none"] = {};
  state->blobs["bytes"] = ByteBuffer(5, std::byte{7});
  state->values["step"] = 9;
  const ByteRope rope = to_rope(state);
  ByteBuffer together;
  for (const ByteView piece : rope.pieces())
    together.insert(together.end(), piece.begin(), piece.end());
  EXPECT_EQ(together, to_bytes(*state));
  EXPECT_EQ(rope.size(), together.size());
  const auto* tensor = reinterpret_cast<const std::byte*>(state->tensors["shared"].data());
  EXPECT_TRUE(
      std::ranges::any_of(rope.pieces(), [&](ByteView piece) { return piece.data() == tensor; }));
}

}  // namespace
}  // namespace longhaul
