// The result of the codec benchmark as a table for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/longhaul/bench/codec_bench.h"

namespace longhaul::apps {

nlohmann::json codec_bench_json(const CodecBench& bench);
std::string codec_bench_table(const CodecBench& bench);

}  // namespace longhaul::apps
