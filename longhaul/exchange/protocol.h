// The facts that both ends of the protocol agree on beyond proto/longhaul.proto.
#pragma once

#include <cstdint>

#include "longhaul/base/result.h"
#include "longhaul/codec/layer_table.h"
#include "longhaul/exchange/membership.h"
#include "longhaul/exchange/score.h"
#include "longhaul/round/attendance.h"
#include "longhaul/round/plan.h"
#include "longhaul/round/round_id.h"
#include "proto/longhaul.pb.h"

namespace longhaul {

constexpr std::uint32_t kProtocolVersion = 4;

// Bytes of a probe in each direction: of the first one, and at most of those between training's own
// messages.
constexpr std::size_t kProbeBytes = 65536;
constexpr std::size_t kMostIdleProbeBytes = std::size_t{4} << 20U;

// A transfer of someone who only measures the link, and its next piece: bytes that do not
// compress.
constexpr std::uint64_t kMostProbeBytes = std::uint64_t{256} << 20U;
v1::Frame probe_chunk(std::uint64_t total, std::uint64_t offset);

v1::Plan to_message(const Plan& plan);
// Refuses a plan outside of the limits.
Result<Plan> plan_from(const v1::Plan& message);

v1::RoundId to_message(RoundId round);
RoundId round_from(const v1::RoundId& message);

v1::Attendance to_message(const Attendance& attendance);
// As an update of that step may depend on.
Result<Attendance> attendance_from(const v1::Attendance& message, std::uint64_t step);

v1::Report to_message(const StepReport& report);

v1::Evaluation to_message(const Score& score);
Score score_from(const v1::Evaluation& message);

// A cause that this release does not know counts as kSteps.
FinishCause cause_from(v1::FinishCause message);

v1::LayerTable to_message(const LayerTable& layers);
// One after the other they make a model of so many elements, or there are none; refuses all else.
Result<LayerTable> layers_from(const v1::LayerTable& message, std::size_t elements);

}  // namespace longhaul
