// Writes the report of invented runs to the file it is given, for tests/web/report_test.py: of a
// lab, a rehearsal or an oracle.
#include <fstream>
#include <iostream>
#include <string>

#include "longhaul/lab/report.h"
#include "tests/lab/sample_runs.h"

namespace longhaul::lab {
namespace {

RunResult planned(const SampleRun& sample) {
  RunResult run = sample_run(sample);
  add_sample_plans(run);
  run.plan.delay_steps = 3;
  return run;
}

std::vector<RunResult> lab_runs() {
  std::vector<RunResult> runs;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    runs.push_back(sample_run({.recipe = "d-sgd", .seed = seed, .step_time_s = 1.4}));
    runs.push_back(planned({.recipe = "dd-ef-sgd", .seed = seed, .step_time_s = 0.06}));
    runs.push_back(
        sample_run({.recipe = "<b>dga</b>", .seed = seed, .step_time_s = 0.7, .best = 0.7}));
  }
  RunResult diverged = sample_run({.recipe = "deco", .step_time_s = 0.08, .best = 0.3});
  diverged.status = RunStatus::kDiverged;
  diverged.final_loss.reset();
  diverged.final_accuracy.reset();
  for (std::size_t i = 8; i < diverged.evaluations.size(); ++i)
    diverged.evaluations[i].loss = 16.0 * static_cast<double>(i);
  runs.push_back(diverged);
  RunResult layered = sample_run({.recipe = "dreamddp", .step_time_s = 0.1});
  add_sample_layers(layered);
  runs.push_back(layered);
  return runs;
}

std::vector<RunResult> rehearsal_runs() {
  std::vector<RunResult> runs{sample_run({.recipe = "d-sgd", .step_time_s = 1.4}),
                              planned({.recipe = "auto", .step_time_s = 0.061})};
  runs[0].predicted_step_time = Seconds(1.38);
  runs[1].predicted_step_time = Seconds(0.06);
  return runs;
}

std::vector<RunResult> oracle_runs() {
  std::vector<RunResult> runs{planned({.recipe = "auto", .step_time_s = 0.062}),
                              planned({.recipe = kClairvoyant, .step_time_s = 0.06})};
  runs[0].plan.keep_ratio = 0.02;
  for (const double ratio : {0.001, 0.01, 0.1}) {
    for (const int delay : {1, 3, 6}) {
      RunResult run = sample_run({.recipe = "static:keep_ratio=" + std::to_string(ratio) +
                                            ":delay_steps=" + std::to_string(delay),
                                  .step_time_s = 0.06 + ratio + 0.05 / delay,
                                  .best = ratio < 0.01 && delay > 3 ? 0.5 : 0.9});
      run.plan.keep_ratio = ratio;
      run.plan.delay_steps = delay;
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace
}  // namespace longhaul::lab

int main(int argc, char** argv) {
  using namespace longhaul::lab;
  const std::string kind = argc == 3 ? argv[2] : "lab";
  if (argc < 2 || argc > 3 || (kind != "lab" && kind != "rehearsal" && kind != "oracle")) {
    std::cerr << "usage: longhaul_report_sample FILE [lab | rehearsal | oracle]\n";
    return 2;
  }
  const std::vector<RunResult> runs = kind == "lab"         ? lab_runs()
                                      : kind == "rehearsal" ? rehearsal_runs()
                                                            : oracle_runs();
  ReportOptions options{.version = "test", .command = "longhaul " + kind + " sample"};
  if (kind == "oracle") options.verdict = verdict_of(runs);
  std::ofstream page(argv[1], std::ios::binary);
  page << report_html(sample_scenario(), runs, options);
  return page.flush() ? 0 : 1;
}
