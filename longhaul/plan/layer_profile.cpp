#include "longhaul/plan/layer_profile.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "longhaul/base/file.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostLayers = 10'000;
constexpr double kMostSeconds = 1e6;
constexpr double kMostBytes = 1e15;
constexpr std::size_t kMostFileBytes = 16U << 20U;

Error refused(std::string why) { return {ErrorCode::kInvalidArgument, std::move(why)}; }

// A number of `object` from 0 to `most`.
Result<double> number_of(const nlohmann::ordered_json& object, const char* key, double most) {
  const auto found = object.find(key);
  if (found == object.end()) return refused(std::string("no value \"") + key + '"');
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!(value >= 0 && value <= most))
    return refused(std::string(key) + ": expected a number from 0 on, got " + found->dump());
  return value;
}

Result<LayerProfile::Layer> layer_from_json(const nlohmann::ordered_json& object) {
  if (!object.is_object() || !object.contains("name") || !object["name"].is_string())
    return refused("expected an object with a name");
  LayerProfile::Layer layer{.name = object["name"].get<std::string>()};
  layer.forward = Seconds(LONGHAUL_TRY(number_of(object, "t_fp_s", kMostSeconds)));
  layer.backward = Seconds(LONGHAUL_TRY(number_of(object, "t_bp_s", kMostSeconds)));
  layer.bytes = LONGHAUL_TRY(number_of(object, "bytes", kMostBytes));
  return layer;
}

}  // namespace

Seconds LayerProfile::forward() const {
  Seconds sum{};
  for (const Layer& layer : layers) sum += layer.forward;
  return sum;
}

Seconds LayerProfile::backward() const {
  Seconds sum{};
  for (const Layer& layer : layers) sum += layer.backward;
  return sum;
}

double LayerProfile::bytes() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.bytes;
  return sum;
}

LayerProfile scaled(LayerProfile profile, Seconds step) {
  const double factor = step / (profile.forward() + profile.backward());
  for (LayerProfile::Layer& layer : profile.layers) {
    layer.forward *= factor;
    layer.backward *= factor;
  }
  return profile;
}

// Whole elements in each piece.
LayerProfile in_pieces(const LayerProfile& profile, double most_bytes) {
  constexpr double kElementBytes = 4;
  LayerProfile cut{.batch = profile.batch, .overhead_share = profile.overhead_share};
  for (const LayerProfile::Layer& layer : profile.layers) {
    const double elements = layer.bytes / kElementBytes;
    const double wanted = std::ceil(layer.bytes / std::max(most_bytes, kElementBytes));
    const auto pieces = static_cast<std::size_t>(std::max(1.0, std::min(wanted, elements)));
    double done = 0;
    for (std::size_t i = 0; i < pieces; ++i) {
      const double end =
          i + 1 == pieces
              ? elements
              : std::floor(elements * static_cast<double>(i + 1) / static_cast<double>(pieces));
      LayerProfile::Layer& piece = cut.layers.emplace_back(layer);
      if (pieces > 1) piece.name += '/' + std::to_string(i + 1);
      piece.bytes = (end - done) * kElementBytes;
      if (i > 0) piece.forward = piece.backward = Seconds(0);
      done = end;
    }
  }
  return cut;
}

nlohmann::ordered_json profile_json(const LayerProfile& profile) {
  auto layers = nlohmann::ordered_json::array();
  for (const LayerProfile::Layer& layer : profile.layers)
    layers.push_back({{"name", layer.name},
                      {"t_fp_s", layer.forward.count()},
                      {"t_bp_s", layer.backward.count()},
                      {"bytes", layer.bytes}});
  return {{"layers", std::move(layers)},
          {"batch", profile.batch},
          {"overhead_share", profile.overhead_share}};
}

Result<LayerProfile> profile_from_json(const nlohmann::ordered_json& object) {
  if (!object.is_object() || !object.contains("layers") || !object["layers"].is_array())
    return refused("expected an object with an array \"layers\"");
  const nlohmann::ordered_json& layers = object["layers"];
  if (layers.empty() || layers.size() > kMostLayers)
    return refused("layers: expected 1 to " + std::to_string(kMostLayers) + ", got " +
                   std::to_string(layers.size()));
  LayerProfile profile;
  std::set<std::string> names;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Result<LayerProfile::Layer> layer = layer_from_json(layers[i]);
    if (!layer.ok()) return std::move(layer).error().within("layer " + std::to_string(i + 1));
    if (!names.insert(layer->name).second)
      return refused("layer " + std::to_string(i + 1) + ": the name \"" + layer->name +
                     "\" occurs twice");
    profile.layers.push_back(std::move(layer).value());
  }
  if (object.contains("batch"))
    profile.batch = static_cast<std::size_t>(LONGHAUL_TRY(number_of(object, "batch", 1e9)));
  if (object.contains("overhead_share"))
    profile.overhead_share = LONGHAUL_TRY(number_of(object, "overhead_share", 1e3));
  if (!(profile.forward() + profile.backward() > Seconds(0)))
    return refused("layers: no layer takes any time");
  return profile;
}

Result<LayerProfile> read_profile(const std::filesystem::path& file) {
  const ByteBuffer bytes = LONGHAUL_TRY(read_file(file, kMostFileBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto object = nlohmann::ordered_json::parse(text, nullptr, false);
  Result<LayerProfile> profile =
      object.is_discarded() ? Result<LayerProfile>(refused("not JSON")) : profile_from_json(object);
  if (!profile.ok()) return std::move(profile).error().within(file.string());
  return profile;
}

}  // namespace longhaul
