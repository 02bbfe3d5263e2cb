#include "apps/longhaul_torch/train_identity.h"

#include <span>
#include <sstream>

#include "longhaul/codec/digest.h"

namespace longhaul::apps {
namespace {

std::uint64_t digest_of_layers(const LayerTable& layers) {
  std::string text;
  for (const Layer& layer : layers) text += layer.name + ':' + std::to_string(layer.count) + '\n';
  return digest_of(std::as_bytes(std::span(text)));
}

std::string hexadecimal(std::uint64_t digest) {
  std::ostringstream text;
  text << std::hex << digest;
  return text.str();
}

}  // namespace

RunIdentity identity_of(const v1::Task& task, const std::string& name, const LayerTable& layers) {
  std::string settings;
  for (const std::string& setting : task.settings()) settings += setting + ' ';
  return {{"replica", name},
          {"scenario", task.scenario_name()},
          {"scenario_file", hexadecimal(digest_of(std::as_bytes(std::span(task.scenario()))))},
          {"settings", settings},
          {"recipe", task.recipe()},
          {"seed", std::to_string(task.seed())},
          {"model", hexadecimal(digest_of_layers(layers))}};
}

}  // namespace longhaul::apps
