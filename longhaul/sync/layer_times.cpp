#include "longhaul/sync/layer_times.h"

#include <string>
#include <vector>

#include "longhaul/base/text.h"
#include "longhaul/plan/layer_schedule.h"

namespace longhaul {
namespace {

constexpr double kSmallShare = 1.0 / 64;
constexpr double kLargeShare = 1.0 / 16;
constexpr double kForwardShare = 1.0 / 3;  // a backward pass costs twice a forward pass

std::string module_of(const Layer& tensor) { return tensor.name.substr(0, tensor.name.rfind('.')); }

std::string names_of(const LayerProfile& profile) {
  std::vector<std::string> names;
  for (const LayerProfile::Layer& layer : profile.layers) names.push_back(layer.name);
  return joined(names);
}

}  // namespace

Result<LayerProfile> layer_times(const LayerTable& layers, const LayerProfile& times) {
  LayerProfile profile;
  for (const Layer& tensor : layers) {
    const double bytes = sizeof(float) * static_cast<double>(tensor.count);
    if (profile.layers.empty() || profile.layers.back().name != module_of(tensor))
      profile.layers.push_back({.name = module_of(tensor)});
    LayerProfile::Layer& layer = profile.layers.back();
    layer.bytes += bytes;
    layer.forward += Seconds(kForwardShare * bytes);
    layer.backward += Seconds((1 - kForwardShare) * bytes);
  }
  if (times.layers.empty()) return profile;
  if (names_of(times) != names_of(profile))
    return Error{ErrorCode::kInvalidArgument,
                 "layer: expected the layers of the model in backward order, " + names_of(profile) +
                     "; got " + names_of(times)};
  for (std::size_t i = 0; i < profile.layers.size(); ++i) {
    profile.layers[i].forward = times.layers[i].forward;
    profile.layers[i].backward = times.layers[i].backward;
  }
  return profile;
}

LayerProfile in_parts(const LayerProfile& layers) {
  const LayerProfile grouped = merged_layers(layers, group_layers(layers, kSmallShare));
  return in_pieces(grouped, layers.bytes() * kLargeShare);
}

}  // namespace longhaul
