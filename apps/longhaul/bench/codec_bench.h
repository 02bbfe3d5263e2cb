// Measures codecs on updates like those of real training, each beside memcpy on the same buffer.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/codec/codec.h"

namespace longhaul::apps {

// One codec at one ratio. Speeds are medians over the repetitions, in GB (10^9 bytes) of dense fp32
// input per second.
struct CodecBenchRow {
  CodecOptions codec;
  double ratio = 1.0;
  double encode_gb_s = 0.0;  // e += g, selection, encoding, removal from e
  double encode_p99_gb_s = 0.0;
  double decode_gb_s = 0.0;  // checking the payload and adding it to a dense buffer
  double bits_per_value = 0.0;
  double payload_bytes = 0.0;
  double memcpy_gb_s = 0.0;                 // measured between the repetitions of this row
  std::optional<double> torch_topk_gb_s{};  // abs, topk, gather on one thread
};

// Settings, and the figures that run_codec_bench() fills in.
struct CodecBench {
  std::size_t elements = 25'000'000;
  std::size_t repetitions = 11;
  std::size_t threads = 1;
  bool with_torch = true;
  std::vector<CodecBenchRow> rows;
  std::string torch_missing;  // why there are no torch figures; empty if there are
  // Summing payloads of several replicas, as the hub does.
  std::size_t summed_payloads = 8;
  CodecOptions summed_codec{.kind = CodecKind::kTopK, .values = ValueFormat::k2Bit};
  double summed_ratio = 1.0 / 64;
  double sum_ns_per_entry = 0.0;
};

std::vector<CodecBenchRow> default_codec_rows();

// Calls progress(done, all, what comes next) before each part.
using Progress = std::function<void(std::size_t done, std::size_t all, const std::string& next)>;
void run_codec_bench(CodecBench& bench, const Progress& progress);

}  // namespace longhaul::apps
