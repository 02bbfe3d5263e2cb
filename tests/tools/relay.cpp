// A link as a process, for tests with real processes: a relay that obeys commands.
//
//   longhaul_test_relay --to PORT [--up RATE] [--down RATE] [--latency DURATION]
//
// Prints the port it listens on, then one line for each line that it reads: `cut`, `restore`,
// `drop` (every connection is reset) or `passed`. Ends with its input.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "longhaul/link/relay.h"
#include "longhaul/telemetry/event_log.h"

namespace longhaul {
namespace {

struct RelayArguments {
  std::uint16_t to = 0;
  std::string up = "1gbit";
  std::string down = "1gbit";
  std::string latency = "1ms";
};

int serve(const RelayArguments& arguments) {
  const Result<Bandwidth> up = parse_bandwidth(arguments.up);
  const Result<Bandwidth> down = parse_bandwidth(arguments.down);
  const Result<Seconds> latency = parse_duration(arguments.latency);
  if (!up.ok() || !down.ok() || !latency.ok()) return 2;
  const Result<std::unique_ptr<Relay>> relay = Relay::start(
      arguments.to,
      {.up = RateTrace::constant(*up), .down = RateTrace::constant(*down), .latency = *latency});
  if (!relay.ok()) {
    std::cerr << relay.error().message << '\n';
    return 1;
  }
  print_event("listening", {{"port", (*relay)->port()}});
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "cut") (*relay)->cut();
    if (command == "restore") (*relay)->restore();
    if (command == "drop") (*relay)->drop_connections();
    print_event(command, {{"up", (*relay)->passed_up()}, {"down", (*relay)->passed_down()}});
  }
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  longhaul::RelayArguments arguments;
  CLI::App program{"A link as a process, for tests"};
  program.add_option("--to", arguments.to, "Port of the hub on 127.0.0.1")->required();
  program.add_option("--up", arguments.up, "Rate to the hub");
  program.add_option("--down", arguments.down, "Rate from the hub");
  program.add_option("--latency", arguments.latency, "One way");
  CLI11_PARSE(program, argc, argv);
  return longhaul::serve(arguments);
}
