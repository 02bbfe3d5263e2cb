// The options of `train`: `longhaul` parses them to help and to refuse wrong use, `longhaul-torch`
// to train.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "longhaul/base/result.h"
#include "longhaul/base/units.h"
#include "longhaul/grpc/grpc_transport.h"

namespace longhaul::apps {

// As written on the command line.
struct TrainArguments {
  std::string invite;
  std::string hub;
  std::string name;
  std::optional<std::uint32_t> slot;
  std::string data;
  std::string save;
  std::string stamps;             // a directory for copies of the shared model to be evaluated
  std::optional<Bandwidth> rate;  // of bulk data to the hub, at most
  bool evaluate = false;
  bool json = false;
};

// Adds the subcommand; `arguments` outlives the parsing.
CLI::App* add_train_options(CLI::App& program, TrainArguments& arguments);

// Where to dial, as whom.
struct HubAccess {
  std::string address;
  std::string name;
  std::string token;
  std::optional<TlsKeys> tls;
};
Result<HubAccess> hub_access(const TrainArguments& arguments);

}  // namespace longhaul::apps
