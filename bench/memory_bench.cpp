// How many vectors of the model a replica holds: wfbp, local-sgd and dreamddp, with payloads and
// with means in place.
//
//   build/release/bin/memory_bench [--json] [--elements N]
//
// `between_steps` and `at_most` count every allocation of the engine and of what it submits and
// collects, beside parameters and gradient, in vectors of the model; over a hub all means of a step
// are there before the first one is merged. `peak_rss` is what the system counts for a process that
// does just that, parameters and gradient included.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/sync/held_vectors.h"

namespace longhaul {
namespace {

// In a process of its own, so that its peak is that of this row.
nlohmann::ordered_json measure(const std::string& recipe, bool averages_in_place,
                               std::size_t elements) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const testing::HeldVectors held = testing::held_by(recipe, averages_in_place, elements);
    const bool is_written = write(pipe_ends[1], &held, sizeof(held)) == sizeof(held);
    _exit(is_written ? 0 : 1);
  }
  close(pipe_ends[1]);
  testing::HeldVectors held;
  const bool is_read = read(pipe_ends[0], &held, sizeof(held)) == sizeof(held);
  close(pipe_ends[0]);
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  if (!is_read || status != 0) return {};
  const double model = static_cast<double>(elements) * sizeof(float);
  return {{"recipe", recipe},
          {"means", averages_in_place ? "in place" : "payloads"},
          {"elements", elements},
          {"between_steps", held.between_steps},
          {"at_most", held.at_most},
          {"peak_rss", 1024.0 * static_cast<double>(usage.ru_maxrss) / model}};
}

int run(int argc, char** argv) {
  CLI::App app("How many vectors of the model a replica holds");
  bool as_json = false;
  std::vector<std::size_t> sizes{25'000'000, 124'000'000};
  app.add_flag("--json", as_json, "One JSON object on standard output");
  app.add_option("--elements", sizes, "Of the model (default: 25M and 124M)");
  CLI11_PARSE(app, argc, argv);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::size_t elements : sizes) {
    for (const bool averages_in_place : {true, false}) {
      for (const char* recipe : {"wfbp", "local-sgd", "dreamddp"}) {
        rows.push_back(measure(recipe, averages_in_place, elements));
        if (!as_json) std::cout << rows.back().dump() << '\n' << std::flush;
      }
    }
  }
  if (as_json) std::cout << nlohmann::ordered_json{{"rows", rows}}.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) { return longhaul::run(argc, argv); }
