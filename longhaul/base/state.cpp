#include "longhaul/base/state.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace longhaul {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kValues = "longhaul";  // our key in the metadata
// How the header of a state begins. The checksum follows, as hexadecimal digits.
constexpr std::string_view kHeaderBegin =
    R"({"__metadata__":{"longhaul_format":"2","longhaul_xxh3":")";
constexpr std::size_t kFormatDigit = kHeaderBegin.find('2');
constexpr std::size_t kChecksumBegin = kLengthBytes + kHeaderBegin.size();
constexpr std::size_t kChecksumDigits = 16;
constexpr std::string_view kNoChecksum = "0000000000000000";
static_assert(kHeaderBegin[kFormatDigit] == '0' + kFileFormat);
constexpr std::size_t kHeaderDepth = 3;  // header, tensor, shape
constexpr std::size_t kValuesDepth = 4;

Json entry_of(std::string_view dtype, Json shape, std::size_t begin, std::size_t size) {
  return {{"dtype", dtype}, {"shape", std::move(shape)}, {"data_offsets", {begin, begin + size}}};
}

Json shape_of(const std::string& name, std::size_t count, const Shapes& shapes) {
  const auto found = shapes.find(name);
  if (found == shapes.end()) return Json::array({count});
  std::size_t elements = 1;
  for (const std::int64_t size : found->second) elements *= static_cast<std::size_t>(size);
  LONGHAUL_CHECK_EQ(elements, count);
  return found->second;
}

// Tensors come before bytes, so that they are aligned in the file.
std::string header_of(const State& state, const Shapes& shapes) {
  Json entries = Json::object();
  std::size_t begin = 0;
  const auto note = [&](const std::string& name, std::string_view dtype, Json shape,
                        std::size_t size) {
    LONGHAUL_CHECK(name != kMetadata && !entries.contains(name));
    entries[name] = entry_of(dtype, std::move(shape), begin, size);
    begin += size;
  };
  for (const auto& [name, values] : state.tensors)
    note(name, "F32", shape_of(name, values.size(), shapes), values.size() * sizeof(float));
  for (const auto& [name, bytes] : state.blobs)
    note(name, "U8", Json::array({bytes.size()}), bytes.size());
  std::string text(kHeaderBegin);
  text.append(kNoChecksum).append(R"(",")").append(kValues).append(R"(":)");
  text.append(Json(state.values.dump()).dump()).append("}");
  text.append(entries.empty() ? "" : ",").append(entries.dump(), 1, std::string::npos);
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

ByteView bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string_view text_in(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// XXH3 of a whole file that is made of these pieces.
std::string checksum_of(std::span<const ByteView> pieces) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> sum(XXH3_createState(),
                                                                     &XXH3_freeState);
  LONGHAUL_CHECK(sum != nullptr);
  XXH3_64bits_reset(sum.get());
  for (const ByteView bytes : pieces) XXH3_64bits_update(sum.get(), bytes.data(), bytes.size());
  std::string digits(kNoChecksum);
  std::uint64_t left = XXH3_64bits_digest(sum.get());
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, left >>= 4)
    *digit = "0123456789abcdef"[left & 0xF];
  return digits;
}

// With zeros for the digits that tell it. Precondition: the file has these digits.
std::string checksum_of(ByteView file) {
  const std::array pieces{file.first(kChecksumBegin), bytes_of_text(kNoChecksum),
                          file.subspan(kChecksumBegin + kChecksumDigits)};
  return checksum_of(std::span<const ByteView>(pieces));
}

// Does its header begin as ours do, in this format or another?
bool has_checksum(ByteView file) {
  if (file.size() < kChecksumBegin + kChecksumDigits) return false;
  std::string begin(text_in(file.subspan(kLengthBytes, kHeaderBegin.size())));
  begin[kFormatDigit] = kHeaderBegin[kFormatDigit];
  return begin == kHeaderBegin;
}

Status check_file(ByteView file) {
  const std::string_view told = text_in(file.subspan(kChecksumBegin, kChecksumDigits));
  if (told != checksum_of(file)) return corrupt_payload("damaged: its checksum does not match");
  const char format = text_in(file)[kLengthBytes + kFormatDigit];
  if (format == kHeaderBegin[kFormatDigit]) return Done{};
  return Error{ErrorCode::kMismatch, std::string("written by a newer Longhaul, format ") + format +
                                         "; this one reads format " + std::to_string(kFileFormat)};
}

// An object without names that come twice (of which the parser would keep the last) and nested at
// most `most_depth` deep.
Result<Json> parse_object(std::string_view text, std::size_t most_depth) {
  if (text.empty() || text.front() != '{') return corrupt_payload("not a JSON object");
  std::vector<std::set<std::string>> names(most_depth + 1);  // of the open object at each depth
  std::optional<std::string> fault;
  const auto watch = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    const bool is_start =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    const auto inside = static_cast<std::size_t>(depth) + (is_start ? 1 : 0);
    if (inside > most_depth) {
      fault = "nested too deep";
      return false;
    }
    if (is_start) names[inside].clear();
    if (event == Json::parse_event_t::key && !names[inside].insert(parsed).second)
      fault = parsed.dump() + " comes twice";
    return true;
  };
  Json parsed = Json::parse(text, watch, false);
  if (fault) return corrupt_payload(*fault);
  if (!parsed.is_object()) return corrupt_payload("not a JSON object");
  return parsed;
}

struct TensorEntry {
  std::string name;
  bool is_float = false;
  std::size_t begin = 0;
  std::size_t end = 0;
};

template <typename T>
bool read_value(const Json& json, T& out) {
  bool is_kind = false;
  if constexpr (std::is_same_v<T, std::uint64_t>)
    is_kind =
        json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
  if constexpr (std::is_same_v<T, double>) is_kind = json.is_number();
  if constexpr (std::is_same_v<T, std::string>) is_kind = json.is_string();
  if (is_kind) json.get_to(out);
  return is_kind;
}

template <typename T>
bool read_value(const Json& json, std::vector<T>& out) {
  if (!json.is_array()) return false;
  out.reserve(json.size());
  for (const Json& item : json) {
    if (!read_value(item, out.emplace_back())) return false;
  }
  return true;
}

// The bytes that a tensor of that shape needs; nothing, if they cannot be counted.
std::optional<std::size_t> bytes_of(const std::vector<std::uint64_t>& shape, std::size_t item) {
  std::size_t bytes = item;
  for (const std::uint64_t count : shape) {
    if (count != 0 && bytes > std::numeric_limits<std::size_t>::max() / count) return std::nullopt;
    bytes *= count;
  }
  return bytes;
}

Result<TensorEntry> read_entry(const std::string& name, const Json& json, std::size_t data_bytes) {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offsets;
  const bool has_all = json.is_object() && json.size() == 3 && json.contains("dtype") &&
                       json.contains("shape") && json.contains("data_offsets") &&
                       read_value(json["dtype"], dtype) && read_value(json["shape"], shape) &&
                       read_value(json["data_offsets"], offsets) && offsets.size() == 2;
  if (!has_all) return corrupt_payload("expected a dtype, a shape and two data_offsets");
  if (dtype != "F32" && dtype != "U8")
    return corrupt_payload("expected dtype F32 or U8, got " + Json(dtype).dump());
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes)
    return corrupt_payload("data_offsets outside of the data");
  const bool is_float = dtype == "F32";
  if (bytes_of(shape, is_float ? sizeof(float) : 1) != offsets[1] - offsets[0])
    return corrupt_payload("data_offsets and shape do not fit together");
  return TensorEntry{.name = name, .is_float = is_float, .begin = offsets[0], .end = offsets[1]};
}

Result<std::vector<TensorEntry>> read_entries(const Json& header, std::size_t data_bytes) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) continue;
    Result<TensorEntry> entry = read_entry(name, json, data_bytes);
    if (!entry.ok()) return std::move(entry).error().within("tensor " + Json(name).dump());
    entries.push_back(std::move(entry).value());
  }
  std::ranges::sort(entries, {}, [](const TensorEntry& e) { return std::tuple(e.begin, e.end); });
  std::size_t end = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != end)
      return corrupt_payload("tensor " + Json(entry.name).dump() +
                             (entry.begin < end ? ": overlaps another" : ": a gap before it"));
    end = entry.end;
  }
  if (end != data_bytes) return corrupt_payload("data that no tensor covers");
  return entries;
}

Result<Json> read_values(const Json& header) {
  if (!header.contains(kMetadata)) return Json::object();
  const Json& metadata = header[kMetadata];
  const bool is_text = metadata.is_object() && std::ranges::all_of(metadata, &Json::is_string);
  if (!is_text) return corrupt_payload("__metadata__: expected an object of strings");
  if (!metadata.contains(kValues)) return Json::object();
  Result<Json> values = parse_object(metadata[kValues].get_ref<const std::string&>(), kValuesDepth);
  if (!values.ok()) return std::move(values).error().within("__metadata__");
  return values;
}

void append_floats(std::span<const float> values, ByteWriter& out) {
  std::byte* at = out.extend(values.size_bytes()).data();
  if constexpr (std::endian::native == std::endian::little) {
    if (!values.empty()) std::memcpy(at, values.data(), values.size_bytes());
    return;
  }
  for (const float value : values) {
    store_le(at, std::bit_cast<std::uint32_t>(value));
    at += sizeof(float);
  }
}

std::vector<float> floats_in(ByteView bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if constexpr (std::endian::native == std::endian::little) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<float>(load_le<std::uint32_t>(bytes.data() + i * sizeof(float)));
  return values;
}

Result<State> read_state(std::string_view header_text, ByteView data) {
  Result<Json> header = parse_object(header_text, kHeaderDepth);
  if (!header.ok()) return std::move(header).error().within("header");
  const Result<std::vector<TensorEntry>> entries = read_entries(*header, data.size());
  if (!entries.ok()) return entries.error();
  Result<Json> values = read_values(*header);
  if (!values.ok()) return std::move(values).error();
  State state;
  state.values = std::move(values).value();
  for (const TensorEntry& entry : *entries) {
    const ByteView bytes = data.subspan(entry.begin, entry.end - entry.begin);
    if (entry.is_float) {
      state.tensors[entry.name] = floats_in(bytes);
    } else {
      state.blobs[entry.name].assign(bytes.begin(), bytes.end());
    }
  }
  return state;
}

Result<ByteView> header_in(ByteView bytes) {
  if (bytes.size() < kLengthBytes) return corrupt_payload("state: header length: truncated");
  const auto length = load_le<std::uint64_t>(bytes.data());
  if (length > kMostStateHeaderBytes) {
    return corrupt_payload("state: header: " + std::to_string(length) +
                           " bytes, expected at most " + std::to_string(kMostStateHeaderBytes));
  }
  if (length > bytes.size() - kLengthBytes) return corrupt_payload("state: header: truncated");
  return bytes.subspan(kLengthBytes, length);
}

// Whose metadata has the values and nothing else.
bool is_of_format_1(ByteView bytes) {
  const Result<ByteView> text = header_in(bytes);
  if (!text.ok()) return false;
  const Result<Json> header = parse_object(text_in(*text), kHeaderDepth);
  if (!header.ok() || !header->contains(kMetadata)) return false;
  const Json& metadata = (*header)[kMetadata];
  return metadata.is_object() && metadata.size() == 1 && metadata.contains(kValues);
}

Error not_there(std::string_view what, std::string_view name) {
  return {ErrorCode::kMismatch, "no " + std::string(what) + " \"" + std::string(name) + '"'};
}

}  // namespace

Result<std::span<const float>> State::tensor(std::string_view name, std::size_t elements) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return not_there("tensor", name);
  if (found->second.size() != elements) {
    return Error{ErrorCode::kMismatch, "tensor \"" + std::string(name) + "\": expected " +
                                           std::to_string(elements) + " elements, got " +
                                           std::to_string(found->second.size())};
  }
  return std::span<const float>(found->second);
}

Result<ByteView> State::blob(std::string_view name) const {
  const auto found = blobs.find(name);
  if (found == blobs.end()) return not_there("bytes", name);
  return ByteView(found->second);
}

template <typename T>
Result<T> State::value(std::string_view name) const {
  const auto found = values.find(name);
  if (found == values.end()) return not_there("value", name);
  T out{};
  if (!read_value(*found, out)) return not_there("value of the right kind", name);
  return out;
}

template Result<std::uint64_t> State::value(std::string_view) const;
template Result<double> State::value(std::string_view) const;
template Result<std::string> State::value(std::string_view) const;
template Result<std::vector<std::uint64_t>> State::value(std::string_view) const;
template Result<std::vector<double>> State::value(std::string_view) const;
template Result<std::vector<std::string>> State::value(std::string_view) const;

ByteBuffer to_bytes(const State& state, const Shapes& shapes) {
  const std::string header = header_of(state, shapes);
  LONGHAUL_CHECK_LE(header.size(), kMostStateHeaderBytes);
  std::size_t size = kLengthBytes + header.size();
  for (const auto& [name, values] : state.tensors) size += values.size() * sizeof(float);
  for (const auto& [name, bytes] : state.blobs) size += bytes.size();
  ByteWriter out;
  out.reserve(size);
  out.u64(header.size());
  out.bytes(std::as_bytes(std::span(header)));
  for (const auto& [name, values] : state.tensors) append_floats(values, out);
  for (const auto& [name, bytes] : state.blobs) out.bytes(bytes);
  ByteBuffer file = std::move(out).release();
  std::ranges::copy(bytes_of_text(checksum_of(file)), file.begin() + kChecksumBegin);
  return file;
}

ByteRope to_rope(const std::shared_ptr<const State>& state) {
  if constexpr (std::endian::native != std::endian::little)
    return std::make_shared<const ByteBuffer>(to_bytes(*state));
  const std::string header = header_of(*state, {});
  LONGHAUL_CHECK_LE(header.size(), kMostStateHeaderBytes);
  ByteWriter out;
  out.u64(header.size());
  out.bytes(bytes_of_text(header));
  auto begin = std::make_shared<ByteBuffer>(std::move(out).release());
  ByteRope rope;
  rope.append(*begin, begin);
  for (const auto& [name, values] : state->tensors)
    rope.append(std::as_bytes(std::span(values)), state);
  for (const auto& [name, bytes] : state->blobs) rope.append(bytes, state);
  const std::string checksum = checksum_of(rope.pieces());
  std::ranges::copy(bytes_of_text(checksum), begin->begin() + kChecksumBegin);
  return rope;
}

Result<State> state_from_bytes(ByteView bytes) {
  if (has_checksum(bytes)) return state_from_safetensors(bytes);
  return is_of_format_1(bytes)
             ? Error{ErrorCode::kMismatch,
                     "written by an older Longhaul, format 1; this one reads format " +
                         std::to_string(kFileFormat) +
                         ": go on with the older one, or begin anew in another place"}
             : corrupt_payload("damaged, or not a file of Longhaul: it does not begin as one");
}

Result<State> state_from_safetensors(ByteView bytes) {
  if (has_checksum(bytes)) {
    Status checked = check_file(bytes);
    if (!checked.ok()) return std::move(checked).error();
  }
  const Result<ByteView> header = header_in(bytes);
  if (!header.ok()) return header.error();
  Result<State> state = read_state(text_in(*header), bytes.subspan(kLengthBytes + header->size()));
  if (!state.ok()) return std::move(state).error().within("state");
  return state;
}

}  // namespace longhaul
