#include "apps/longhaul/bench/codec_bench_report.h"

#include <array>
#include <cstdio>
#include <fstream>

namespace longhaul::apps {
namespace {

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// Speeds mean little without the machine they were measured on.
std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

nlohmann::json codec_bench_json(const CodecBench& bench) {
  nlohmann::json rows = nlohmann::json::array();
  for (const CodecBenchRow& row : bench.rows) {
    nlohmann::json torch = nullptr;
    if (row.torch_topk_gb_s) torch = *row.torch_topk_gb_s;
    rows.push_back({{"codec", row.codec.name()},
                    {"ratio", row.ratio},
                    {"encode_gb_s", row.encode_gb_s},
                    {"encode_p99_gb_s", row.encode_p99_gb_s},
                    {"decode_gb_s", row.decode_gb_s},
                    {"bits_per_value", row.bits_per_value},
                    {"payload_bytes", row.payload_bytes},
                    {"memcpy_gb_s", row.memcpy_gb_s},
                    {"torch_topk_gb_s", torch}});
  }
  const nlohmann::json sum = {{"payloads", bench.summed_payloads},
                              {"codec", bench.summed_codec.name()},
                              {"ratio", bench.summed_ratio},
                              {"ns_per_entry", bench.sum_ns_per_entry}};
  return {{"rows", rows},
          {"sum", sum},
          {"elements", bench.elements},
          {"threads", bench.threads},
          {"repetitions", bench.repetitions},
          {"processor", processor_name()}};
}

std::string codec_bench_table(const CodecBench& bench) {
  std::string text = formatted("%zu floats, %zu thread%s, median of %zu repetitions on %s\n",
                               bench.elements, bench.threads, bench.threads == 1 ? "" : "s",
                               bench.repetitions, processor_name().c_str());
  text += "speeds in GB/s of dense fp32 input; take = e += g, select, encode, remove\n\n";
  text +=
      "codec               ratio   bits/value  smaller by     take   of memcpy   over torch   "
      "decode\n";
  for (const CodecBenchRow& row : bench.rows) {
    const double dense = static_cast<double>(bench.elements) * sizeof(float);
    text += formatted("%-17s %7.4g %12.2f %10.0fx %8.2f %10.0f%%", row.codec.name().c_str(),
                      row.ratio, row.bits_per_value, dense / row.payload_bytes, row.encode_gb_s,
                      100 * row.encode_gb_s / row.memcpy_gb_s);
    text += row.torch_topk_gb_s ? formatted("%12.0fx", row.encode_gb_s / *row.torch_topk_gb_s)
                                : formatted("%13s", "-");
    text += formatted("%9.1f\n", row.decode_gb_s);
  }
  text += formatted("\nsum of %zu payloads (%s, ratio 1/%.0f): %.2f ns per entry\n",
                    bench.summed_payloads, bench.summed_codec.name().c_str(),
                    1 / bench.summed_ratio, bench.sum_ns_per_entry);
  if (!bench.torch_missing.empty()) text += "no torch figures: " + bench.torch_missing + "\n";
  return text;
}

}  // namespace longhaul::apps
