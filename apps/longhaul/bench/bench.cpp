// longhaul bench: speed and size of the parts, measured on this machine.
#include <unistd.h>

#include <iostream>
#include <memory>

#include "apps/longhaul/bench/codec_bench.h"
#include "apps/longhaul/bench/codec_bench_report.h"
#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "longhaul/base/text.h"
#include "longhaul/base/units.h"

namespace longhaul::apps {
namespace {

// As written on the command line.
struct BenchCommandOptions {
  std::string elements = "25M";
  std::string codecs;
  std::string ratio;
  std::size_t threads = 1;
  std::size_t repetitions = 11;
  bool json = false;
  bool no_torch = false;
};

Result<std::vector<CodecBenchRow>> chosen_rows(const BenchCommandOptions& arguments) {
  std::vector<CodecBenchRow> rows = default_codec_rows();
  if (!arguments.codecs.empty()) {
    rows.clear();
    for (const std::string& name : split_list(arguments.codecs)) {
      const CodecOptions codec = LONGHAUL_TRY(parse_codec(name));
      rows.push_back({.codec = codec, .ratio = 0.01});
    }
  }
  if (!arguments.ratio.empty()) {
    const double ratio = LONGHAUL_TRY(parse_ratio(arguments.ratio));
    if (ratio <= 0.0)
      return Error{ErrorCode::kInvalidArgument,
                   "--ratio: expected more than 0, got " + arguments.ratio};
    for (CodecBenchRow& row : rows) row.ratio = ratio;
  }
  return rows;
}

Result<CodecBench> bench_from(const BenchCommandOptions& arguments) {
  const std::uint64_t elements = LONGHAUL_TRY(parse_count(arguments.elements));
  if (elements == 0)
    return Error{ErrorCode::kInvalidArgument, "--elements: expected at least 1, got 0"};
  std::vector<CodecBenchRow> rows = LONGHAUL_TRY(chosen_rows(arguments));
  return CodecBench{.elements = static_cast<std::size_t>(elements),
                    .repetitions = arguments.repetitions,
                    .threads = arguments.threads,
                    .with_torch = !arguments.no_torch,
                    .rows = std::move(rows)};
}

// One line that is written over on a terminal; nothing when standard error is not one.
void show_progress(std::size_t done, std::size_t all, const std::string& next) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::cerr << "\r\033[K";
  if (done < all) std::cerr << '[' << done + 1 << '/' << all << "] " << next << std::flush;
}

int bench_codec(const BenchCommandOptions& arguments) {
  Result<CodecBench> bench = bench_from(arguments);
  if (!bench.ok()) return complain("bench codec", bench.error(), kExitWrongUse);
  run_codec_bench(*bench, show_progress);
  if (arguments.json) {
    std::cout << codec_bench_json(*bench).dump(2) << '\n';
  } else {
    std::cout << codec_bench_table(*bench);
  }
  return kExitDone;
}

}  // namespace

void add_bench(CLI::App& program, Run& run) {
  CLI::App* bench = program.add_subcommand(
      "bench", "Measure speed and size of parts of Longhaul on this machine");
  bench->require_subcommand(1);
  CLI::App* codec = bench->add_subcommand(
      "codec", "Codecs against memcpy and torch, all in one run (about a minute)");
  const auto arguments = std::make_shared<BenchCommandOptions>();  // shared with the callback,
                                                                   // which outlives this call
  codec->add_option("--elements", arguments->elements, "Floats in an update, such as 25M")
      ->capture_default_str();
  codec->add_option("--codec", arguments->codecs,
                    "Only these, such as top_k/bf16,chunk_top_k/2bit (default: a table of all)");
  codec->add_option("--ratio", arguments->ratio,
                    "Keep ratio of every row, such as 0.01 or 1/64 (default: by row)");
  codec->add_option("--threads", arguments->threads, "Threads that a codec may use")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  codec
      ->add_option("--repetitions", arguments->repetitions,
                   "Repetitions of each row, fresh data each time")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  codec->add_flag("--no-torch", arguments->no_torch, "Leave out the comparison with torch");
  codec->add_flag("--json", arguments->json, "One JSON object instead of the table");
  codec->callback([arguments, &run] { run = [arguments] { return bench_codec(*arguments); }; });
}

}  // namespace longhaul::apps
