// How well the passive estimator predicts transfers on recorded traces.
//
//   build/release/bin/estimate_traces [--round SECONDS] FILE.csv…
//
// A file has the columns trace,t_s,mbps. On each trace, a message of half of what the mean rate
// carries in a round is sent every round; before each, its transfer time is predicted. Prints the
// median absolute error of each file's traces.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "longhaul/link/link_model.h"
#include "longhaul/link/rate_estimator.h"

namespace longhaul {
namespace {

constexpr double kLoad = 0.5;
constexpr Seconds kLongest{600};
constexpr std::size_t kFewestRows = 20;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

std::map<std::string, std::string> traces_in(const std::string& path) {
  std::map<std::string, std::string> traces;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the head
  while (std::getline(file, line)) {
    const std::size_t comma = line.find(',');
    if (comma != std::string::npos) traces[line.substr(0, comma)] += line.substr(comma + 1) + '\n';
  }
  return traces;
}

// The median absolute error on one trace.
double error_on(const RateTrace& trace, Seconds round) {
  const double bytes = kLoad * trace.mean().bytes_per_second * round.count();
  Fifo line(trace);
  RateEstimator estimator;
  std::vector<double> errors;
  Seconds free{};
  for (Seconds now{}; now < std::min(kLongest, trace.period()); now = std::max(now + round, free)) {
    const Seconds first_byte = line.first_byte(now);
    free = line.send(now, bytes);
    const Seconds took = free - first_byte;
    if (const auto rate = estimator.typical())
      errors.push_back(std::abs(bytes / rate->bytes_per_second / took.count() - 1));
    estimator.add({.bytes = bytes, .duration = took});
  }
  return median(errors);
}

int run(const std::vector<std::string>& files, Seconds round) {
  std::vector<double> all;
  for (const std::string& file : files) {
    std::vector<double> errors;
    for (const auto& [name, rows] : traces_in(file)) {
      if (std::ranges::count(rows, '\n') < static_cast<std::ptrdiff_t>(kFewestRows)) continue;
      const Result<RateTrace> trace = parse_csv_trace(rows);
      if (trace.ok() && trace->mean().bytes_per_second > 0)
        errors.push_back(error_on(*trace, round));
    }
    if (errors.empty()) {
      std::fprintf(stderr, "%s: no trace of %zu rows in it\n", file.c_str(), kFewestRows);
      return 1;
    }
    std::printf("%-24s %3zu traces, median error %5.1f %%, worst trace %5.1f %%\n",
                file.substr(file.rfind('/') + 1).c_str(), errors.size(), 100 * median(errors),
                100 * *std::ranges::max_element(errors));
    all.insert(all.end(), errors.begin(), errors.end());
  }
  std::printf("%-24s %3zu traces, median error %5.1f %% (a round every %g s)\n", "all", all.size(),
              100 * median(all), round.count());
  return 0;
}

}  // namespace
}  // namespace longhaul

int main(int argc, char** argv) {
  CLI::App program("How well transfers on recorded traces are predicted");
  double round = 0.25;
  std::vector<std::string> files;
  program.add_option("--round", round, "Seconds between messages")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  program.add_option("files", files, "CSV files with the columns trace,t_s,mbps")
      ->required()
      ->check(CLI::ExistingFile);
  CLI11_PARSE(program, argc, argv);
  return longhaul::run(files, longhaul::Seconds(round));
}
