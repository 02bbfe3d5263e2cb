// Times and bytes of a model by layer: the input of a layer schedule.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"

namespace longhaul {

struct LayerProfile {
  // One layer of a step, as one machine computes it.
  struct Layer {
    std::string name;
    Seconds forward{};
    Seconds backward{};
    double bytes = 0;  // of its parameters in fp32; tied parameters count once
  };

  // In backward order: the output side comes first. The forward pass has the reverse order.
  std::vector<Layer> layers;
  std::size_t batch = 0;      // samples of the steps that were timed; 0: not known
  double overhead_share = 0;  // of a step's time that no layer accounts for

  [[nodiscard]] Seconds forward() const;
  [[nodiscard]] Seconds backward() const;
  [[nodiscard]] double bytes() const;
};

// The same layers in a step of another length.
LayerProfile scaled(LayerProfile profile, Seconds step);

// Cuts layers of more than `most_bytes` into even pieces, named "hidden/1", "hidden/2", …. All
// pieces of a layer are ready, and needed again, at the same time. So the first piece, which comes
// last in the forward pass, has the layer's forward and backward time.
LayerProfile in_pieces(const LayerProfile& profile, double most_bytes);

// {layers: [{name, t_fp_s, t_bp_s, bytes}], batch, overhead_share}; the last two may be missing.
nlohmann::ordered_json profile_json(const LayerProfile& profile);
// Refuses profiles without layers, negative or absurd numbers, and names that occur twice.
Result<LayerProfile> profile_from_json(const nlohmann::ordered_json& object);
Result<LayerProfile> read_profile(const std::filesystem::path& file);

}  // namespace longhaul
