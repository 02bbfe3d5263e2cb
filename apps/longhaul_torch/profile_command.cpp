#include "apps/longhaul_torch/profile_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "longhaul/base/file.h"
#include "longhaul/base/workers.h"
#include "longhaul/lab/progress.h"
#include "longhaul/plan/layer_profile.h"
#include "longhaul/session/interrupt.h"
#include "trainer/layer_profiler.h"
#include "trainer/workload.h"

namespace longhaul::apps {
namespace {

constexpr double kMostDisturbance = 0.1;

using Row = std::array<std::string, 5>;

// The first column is set to the left, the others to the right.
std::string table_of(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text.append(row[0]).append(widths[0] - row[0].size(), ' ');
    for (std::size_t i = 1; i < row.size(); ++i)
      text.append(2 + widths[i] - row[i].size(), ' ').append(row[i]);
    text += '\n';
  }
  return text;
}

std::string percent(double share) { return formatted("%.1f %%", 100 * share); }

// Whatever interrupts a step hits one layer, and the median of that layer does not show it.
std::string doubt_about(const LayerProfile& profile, Seconds step) {
  const Seconds undisturbed =
      (profile.forward() + profile.backward()) / (1 - profile.overhead_share);
  const double more = step / undisturbed - 1;
  if (!(more > kMostDisturbance)) return {};
  return "Steps took" + formatted(" %.0f %%", 100 * more) +
         " longer than the medians of their layers say: did other programs use the processors?\n";
}

std::string profile_table(const LayerProfile& profile, const trainer::LayerProfiler& profiler,
                          std::size_t steps) {
  const Seconds all = profile.forward() + profile.backward();
  const auto row = [&](const std::string& name, Seconds forward, Seconds backward, double bytes) {
    const double share = (1 - profile.overhead_share) * ((forward + backward) / all);
    return Row{name, to_string(forward), to_string(backward),
               bytes_text(static_cast<std::uint64_t>(bytes)), percent(share)};
  };
  std::vector<Row> rows{{"layer", "forward", "backward", "bytes", "of a step"}};
  for (const LayerProfile::Layer& layer : profile.layers)
    rows.push_back(row(layer.name, layer.forward, layer.backward, layer.bytes));
  rows.push_back(row("all", profile.forward(), profile.backward(), profile.bytes()));
  const Seconds step = profiler.step_time();
  const Seconds with_hooks = profiler.step_time_with_hooks();
  return table_of(rows) + "\nA step of batch " + std::to_string(profile.batch) + " takes " +
         to_string(step) + ", with hooks " + to_string(with_hooks) +
         formatted(" (%+.1f %%)", 100 * (with_hooks / step - 1)) + "; medians of " +
         std::to_string(steps) + " each.\n" + percent(profile.overhead_share) +
         " of a step is in no layer.\n" + doubt_about(profile, with_hooks);
}

Result<std::unique_ptr<Workload>> workload_to_profile(const Scenario& scenario,
                                                      std::size_t threads) {
  trainer::WorkloadOptions options = trainer::workload_options(scenario, scenario.train.seed);
  options.gradient_threads = threads > 0 ? threads : all_cores();
  return trainer::make_workload(options);
}

// False: someone has interrupted.
bool measure(trainer::LayerProfiler& profiler, const std::string& name, std::size_t steps,
             const Clock& clock) {
  lab::Progress progress(std::cerr, ::isatty(STDERR_FILENO) != 0, clock, 1, steps + 1);
  progress.start_run("profile of " + name);
  profiler.warm_up();
  for (std::size_t done = 0; done < steps && !is_interrupted(); ++done) {
    progress.step(done + 1);
    profiler.step();
  }
  progress.clear();
  return !is_interrupted();
}

}  // namespace

int run_profile(const ProfileCommandOptions& arguments) {
  const Result<Scenario> scenario = scenario_to_profile(arguments);
  if (!scenario.ok()) return complain("profile", scenario.error(), kExitWrongUse);
  notice_interrupts();
  const auto workload = workload_to_profile(*scenario, arguments.threads);
  if (!workload.ok()) return complain("profile", workload.error());
  const Clock clock;
  const std::unique_ptr<Learner> learner = (*workload)->make_learner(0);
  trainer::LayerProfiler profiler(*learner, (*workload)->layers(), clock);
  if (!measure(profiler, scenario->name, arguments.steps, clock)) {
    std::cerr << "longhaul profile: interrupted\n";
    return kExitInterrupted;
  }
  const LayerProfile profile = profiler.profile(scenario->train.batch);
  const std::string json = profile_json(profile).dump(2) + '\n';
  if (!arguments.out.empty()) {
    const Status written = write_output(arguments.out, std::as_bytes(std::span(json)), kProfileMark,
                                        arguments.is_forced);
    if (!written.ok()) return complain("profile", Error(written.error()).within("--out"));
  }
  std::ostream& say = is_standard_output(arguments.out) ? std::cerr : std::cout;
  say << (arguments.json ? json : profile_table(profile, profiler, arguments.steps));
  return kExitDone;
}

}  // namespace longhaul::apps
