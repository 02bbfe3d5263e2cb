// HubCore: how rounds close, and how the run ends.
#include <algorithm>
#include <utility>

#include "longhaul/base/units.h"
#include "longhaul/codec/digest.h"
#include "longhaul/hub/hub_core.h"

namespace longhaul {
namespace {

Frame goodbye(const std::string& why, bool is_over) {
  Frame frame;
  frame.mutable_goodbye()->set_why(why);
  frame.mutable_goodbye()->set_is_over(is_over);
  return frame;
}

}  // namespace

// One at a time: the round that is next is known when the one before it has closed.
void HubCore::close_rounds() {
  while (training_ && !training_->is_closing()) {
    const std::optional<TimePoint> at = training_->book().closes_at();
    if (!at || *at > now_) return;
    const Conditions replicas = links_.of_members(roster_);
    run_errand(
        errands_,
        [keeper = training_->keeper(), closing = training_->begin_closing(), replicas] {
          return keeper->close(closing, replicas);
        },
        [this, replicas](const Result<RoundOutcome>& closed) {
          on_round_closed(closed, replicas);
        });
  }
}

// It is in the journal: replicas are told.
void HubCore::on_round_closed(const Result<RoundOutcome>& closed, const Conditions& replicas) {
  if (!training_) return;  // the hub has failed
  if (!closed.ok()) return fail(closed.error());
  training_->end_closing(*closed);
  links_.round_closed(*closed, training_->standing().plan, replicas, now_);
  if (closed->decision) status_.reason = closed->decision->reason;
  for (const auto& [control, peer] : roster_.peers()) courier_.send_means(*peer);
  if (options_.watcher) options_.watcher({.outcome = *closed, .time = now_});
  if (const auto cause = end_.take_postponed()) finish(*cause);
}

// Nobody can have finished the step that the model stands at: its means are not all there. Frames
// of a control stream keep their order, so everyone hears of it before those means.
//
// A run that is stopped goes on later from here: nothing is merged before it is due.
void HubCore::finish(v1::FinishCause cause) {
  end_.ask(cause);
  if (!training_) {
    end_.set(std::nullopt, cause);
    for (const auto& [control, peer] : roster_.peers()) end_.tell(*peer);
    return end("the run was ended before it started", true);
  }
  // The step that the model stands at is known when the round has closed.
  if (training_->is_closing()) return end_.postpone(cause);
  const std::uint64_t step = training_->standing().step;
  if (end_.is_due(step)) return;
  if (cause == v1::CAUSE_TARGET) {  // a hub that is killed now must know where the others end
    if (const Status kept = roster_.end_after(step); !kept.ok()) return fail(kept.error());
  }
  end_.set(step, cause);
  if (cause != v1::CAUSE_STOPPED) {
    errands_.run([keeper = training_->keeper(), steps = step + 1]() -> Errands::End {
      keeper->end_after(steps);
      return [] {};
    });
  }
  for (const auto& [control, peer] : roster_.peers()) end_.tell(*peer);
}

bool HubCore::is_over() const { return training_ && end_.is_past(training_->book().next()); }

void HubCore::announce_end() {
  if (std::exchange(is_announced_, true)) return;
  const std::string steps = std::to_string(*end_.last_step() + 1);
  const std::string all = std::to_string(options_.training.engine.lr.steps);
  const TargetOptions& target = options_.target;
  switch (end_.cause()) {
    case v1::CAUSE_STOPPED:
      return log_.info("the run is stopped after " + steps + " of " + all + " steps");
    case v1::CAUSE_TARGET:
      return log_.info("the run is done: it reached its target, " + name_of(target.metric) + ' ' +
                       formatted("%.4g", target.value) + ", after " + steps + " of " + all +
                       " steps");
    default:
      return log_.info("the run is done: all " + steps + " steps");
  }
}

// A replica that is away still needs the last means, and gets some time to come for them. Those who
// gave up leave rounds behind that nobody closes. If the hub stops, they come for them later.
bool HubCore::is_finished() const {
  if (end_.is_stopping()) return roster_.peers().empty();
  if (!training_ || !end_.last_step() || !roster_.peers().empty()) return false;
  return (is_over() || end_.is_asked()) && !roster_.awaits_absent(now_, options_.patience);
}

void HubCore::find_final_digest() {
  if (!status_.digest.empty() || std::exchange(is_finding_digest_, true)) return;
  run_errand(
      errands_, [keeper = training_->keeper()] { return digest_text(keeper->model().shared()); },
      [this](std::string digest) {
        is_finding_digest_ = false;
        status_.digest = std::move(digest);
      });
}

void HubCore::end(const std::string& why, bool is_over) {
  for (const auto& [control, peer] : roster_.peers()) (void)peer->send(goodbye(why, is_over));
}

// Going on without the journal could lose a round that some have merged.
void HubCore::fail(const Error& why) {
  log_.error(why.message);
  end(why.message, false);
  status_.failure = why;
  desk_.close(why);
  gate_.serve(nullptr);
  courier_.serve(nullptr);
  training_.reset();
}

HubStatus HubCore::status() const {
  HubStatus status = status_;
  status.run = roster_.run().id;
  status.is_started = training_ != nullptr;
  status.elements = first_model_.elements();
  status.slots = roster_.slots();
  status.sessions = roster_.peers().size();
  status.steps = end_.last_step() ? *end_.last_step() + 1 : 0;
  status.cause = end_.cause();
  status.steps_per_s = rate_.per_second();
  status.evaluation = evaluations_.last();
  status.smoothed = evaluations_.smoothed();
  status.target = options_.target;
  status.ends_at_target = options_.ends_at_target;
  status.step_time = links_.step_time();
  status.refused = desk_.refused();
  status.rejected += desk_.rejected() + gate_.rejected();
  if (training_) {
    const Standing& standing = training_->standing();
    status.next_round = training_->book().next().step;
    status.plan = standing.plan;
    status.step = standing.step;
    status.steps_here = status.step - std::min(first_step_, status.step);
    status.time = started_ ? Seconds(now_ - *started_) : Seconds(0);
    if (status.steps > status.step) status.left = rate_.time_for(status.steps - status.step);
    status.predicted_step_time =
        links_.predicted_step_time(links_.of_members(roster_), standing.plan);
  }
  status.replicas = roster_.replicas();
  for (auto& [name, replica] : status.replicas) replica.measured = links_.measured(name);
  return status;
}

}  // namespace longhaul
