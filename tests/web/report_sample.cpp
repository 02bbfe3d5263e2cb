// Writes the report of invented runs to the file it is given, for tests/web/report_test.py.
#include <fstream>
#include <iostream>

#include "longhaul/lab/report.h"
#include "tests/lab/sample_runs.h"

int main(int argc, char** argv) {
  using longhaul::lab::sample_run;
  if (argc != 2) {
    std::cerr << "usage: longhaul_report_sample FILE\n";
    return 2;
  }
  std::vector<longhaul::lab::RunResult> runs;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    runs.push_back(sample_run({.recipe = "d-sgd", .seed = seed, .step_time_s = 1.4}));
    runs.push_back(sample_run({.recipe = "dd-ef-sgd", .seed = seed, .step_time_s = 0.06}));
    runs.push_back(
        sample_run({.recipe = "<b>dga</b>", .seed = seed, .step_time_s = 0.7, .best = 0.7}));
  }
  std::ofstream page(argv[1], std::ios::binary);
  page << longhaul::lab::report_html(longhaul::lab::sample_scenario(), runs, "test");
  return page.flush() ? 0 : 1;
}
