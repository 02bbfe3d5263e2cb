#include "longhaul/round/round_mean.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/codec/accumulate.h"
#include "longhaul/codec/low_rank.h"
#include "longhaul/codec/payload.h"

namespace longhaul {
namespace {

struct Parsed {
  std::vector<PayloadView> views;
  std::vector<Contribution> contributions;
};

Result<Parsed> parse_all(std::span<const Submission> submissions, std::size_t elements) {
  Parsed parsed;
  parsed.views.reserve(submissions.size());
  float members = 0.0F;
  for (const Submission& submission : submissions) members += submission.weight;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    if (submissions[i].payload.empty()) continue;
    Result<PayloadView> view = PayloadView::parse(submissions[i].payload, elements);
    if (!view.ok()) return std::move(view).error().within("replica " + std::to_string(i));
    parsed.views.push_back(std::move(view).value());
    parsed.contributions.push_back(
        {.payload = &parsed.views.back(), .weight = submissions[i].weight / members});
  }
  return parsed;
}

}  // namespace

Result<RoundMean> mean_of_round(std::span<const Submission> submissions, std::size_t elements,
                                Workers& workers) {
  const Result<Parsed> parsed = parse_all(submissions, elements);
  if (!parsed.ok()) return parsed.error();
  RoundMean mean;
  mean.values.resize(elements);
  if (std::optional<ByteBuffer> factors = sum_of_factors(parsed->contributions)) {
    mean.payload = std::move(*factors);
    add(PayloadView::parse(mean.payload, elements).value(), 1.0F, mean.values);
    mean.down.assign(submissions.size(), {.way = WayDown::kUnion, .bytes = mean.payload.size()});
    return mean;
  }
  sum_payloads(parsed->contributions, mean.values, workers);
  const DownLoad dense{.way = WayDown::kDense,
                       .bytes = kPayloadHeaderBytes + elements * sizeof(float)};
  mean.payload = encode_union(parsed->contributions, mean.values, workers);
  const DownLoad together{.way = WayDown::kUnion, .bytes = mean.payload.size()};
  std::size_t all = 0;
  for (const Submission& submission : submissions) all += submission.payload.size();
  for (const Submission& submission : submissions) {
    const DownLoad forwarded{.way = WayDown::kForwarded, .bytes = all - submission.payload.size()};
    mean.down.push_back(
        std::min({dense, together, forwarded},
                 [](const DownLoad& a, const DownLoad& b) { return a.bytes < b.bytes; }));
  }
  return mean;
}

}  // namespace longhaul
