#include "longhaul/hub/status_report.h"

#include "longhaul/exchange/protocol.h"

namespace longhaul {
namespace {

double member_rate(const RateEstimator& estimator) {
  return estimator.typical() ? estimator.typical()->bytes_per_second : 0;
}

v1::MemberReport member_report(const std::string& name, const ReplicaStatus& status) {
  v1::MemberReport report;
  report.set_name(name);
  report.set_slot(static_cast<std::uint32_t>(status.slot));
  report.set_is_connected(status.is_connected);
  report.set_is_enrolled(status.is_enrolled);
  report.set_step(status.step);
  report.set_loss(status.loss);
  report.set_waiting_share(status.waiting_share);
  report.set_passes(status.passes);
  report.set_compute_s(status.measured.compute.typical().count());
  report.set_up_bytes_per_s(member_rate(status.measured.up));
  report.set_down_bytes_per_s(member_rate(status.measured.down));
  report.set_latency_s(status.measured.latency.count());
  report.set_bytes_up(status.bytes_up);
  report.set_bytes_down(status.bytes_down);
  report.set_returned(status.returned);
  report.set_rejected(status.rejected);
  return report;
}

}  // namespace

v1::StatusReport report_of(const HubStatus& status, const v1::Task& task) {
  v1::StatusReport report;
  report.set_scenario_name(task.scenario_name());
  report.set_recipe(task.recipe());
  report.set_elements(status.elements);
  report.set_replicas(static_cast<std::uint32_t>(status.slots));
  report.set_is_started(status.is_started);
  report.set_next_round(status.next_round);
  *report.mutable_plan() = to_message(status.plan);
  report.set_reason(status.reason);
  report.set_step_time_s(status.step_time.count());
  report.set_predicted_step_time_s(status.predicted_step_time.count());
  report.set_refused(status.refused);
  report.set_strangers(status.strangers);
  report.set_rejected(status.rejected);
  report.set_mismatches(status.mismatches);
  report.set_steps(status.steps);
  report.set_step(status.step);
  report.set_steps_per_s(status.steps_per_s);
  report.set_left_s(status.left.count());
  if (status.evaluation) *report.mutable_evaluation() = *status.evaluation;
  report.set_target_metric(name_of(status.target.metric));
  report.set_target_value(status.target.value);
  if (status.smoothed) report.set_smoothed(*status.smoothed);
  report.set_ends_at_target(status.ends_at_target);
  for (const auto& [name, replica] : status.replicas)
    *report.add_members() = member_report(name, replica);
  return report;
}

}  // namespace longhaul
