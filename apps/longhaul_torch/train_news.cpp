#include "apps/longhaul_torch/train_news.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "longhaul/exchange/closing.h"

namespace longhaul::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr Seconds kBetweenLines{5.0};
constexpr std::size_t kMostOfAKind = 5;  // lines a minute

std::string three_digits(double value) {
  std::ostringstream text;
  text << std::setprecision(3) << value;
  return text.str();
}

}  // namespace

TrainNews::TrainNews(bool is_json, LogLevel level, std::uint64_t steps, const Clock& clock)
    : is_json_(is_json),
      steps_(steps),
      clock_(clock),
      log_(Log(level).named("train")),
      start_(clock.now()),
      since_(start_) {}

void TrainNews::started(std::size_t slot, std::uint64_t step, std::size_t threads,
                        bool is_resumed) {
  start_ = since_ = clock_.now();
  first_step_ = step;
  rate_.add(start_, step);
  has_started_ = true;
  if (is_json_)
    return event("started", {{"slot", slot},
                             {"step", step},
                             {"resumed", is_resumed},
                             {"threads", threads},
                             {"monotonic_s", Seconds(start_.time_since_epoch()).count()}});
  log_.info((is_resumed ? "goes on as replica " : "starts as replica ") + std::to_string(slot) +
            " at step " + std::to_string(step) + " with " + std::to_string(threads) +
            (threads == 1 ? " thread" : " threads"));
}

void TrainNews::step(const StepFacts& facts) {
  const std::uint64_t done = facts.step + 1;
  if (is_json_) {
    const bool is_merged = !facts.merged.empty();
    const MergedRound last = is_merged ? facts.merged.back() : MergedRound{};
    return event("step", {{"step", done},
                          {"time_s", time_s()},
                          {"loss", facts.loss},  // null, if it is not finite
                          {"computing_s", facts.computing.count()},
                          {"waiting_s", facts.waiting.count()},
                          {"passes", facts.passes},
                          {"took_part", facts.stance == Stance::kTakePart},
                          {"computed_s", Seconds(facts.computed - start_).count()},
                          {"sent_s", time_or_null(facts.sent)},
                          {"mean_step", is_merged ? Json(last.round.step) : Json()},
                          {"mean_part", is_merged ? Json(last.round.part) : Json()},
                          {"mean_s", time_or_null(last.arrived)},
                          {"rounds", rounds_json(facts.merged)}});
  }
  computing_ += facts.computing;
  waiting_ += facts.waiting;
  rate_.add(clock_.now(), done);
  if (clock_.now() - since_ < kBetweenLines) return;
  const double share = waiting_ / (waiting_ + computing_);
  log_.info("step " + std::to_string(done) + " of " + std::to_string(steps_) + ", loss " +
            three_digits(facts.loss) + ", waiting " + std::to_string(std::lround(100 * share)) +
            " %, " +
            pace_text(rate_.per_second(), rate_.time_for(steps_ - std::min(done, steps_))) +
            (evaluation_ ? ", " + evaluation_text(*evaluation_) : ""));
  since_ = clock_.now();
  computing_ = waiting_ = Seconds(0);
}

void TrainNews::evaluation(const Score& score) {
  if (is_json_)
    event("evaluation", {{"step", score.step},
                         {"loss", score.evaluation.loss},  // null, if it is not finite
                         {"accuracy", score.evaluation.accuracy},
                         {"samples", score.evaluation.samples}});
  evaluation_ = score.evaluation;
}

nlohmann::ordered_json TrainNews::time_or_null(const std::optional<TimePoint>& time) const {
  if (!time) return nullptr;
  return Seconds(*time - start_).count();
}

nlohmann::ordered_json TrainNews::rounds_json(const std::vector<MergedRound>& merged) const {
  Json rounds = Json::array();
  for (const MergedRound& one : merged)
    rounds.push_back({{"step", one.round.step},
                      {"part", one.round.part},
                      {"sent_s", time_or_null(one.sent)},
                      {"mean_s", time_or_null(one.arrived)},
                      {"merged_s", time_or_null(one.merged)},
                      {"waited_s", one.waited.count()}});
  return rounds;
}

void TrainNews::write_seldom(LogLevel level, const std::string& kind, const std::string& line) {
  if (const auto told = repeats_.line_of_kind(kind, line, kMostOfAKind, clock_.now()))
    log_.write(level, *told);
}

void TrainNews::link(const LinkNews& news) {
  if (is_json_) {
    if (news) return event("connection", {{"state", "lost"}, {"why", news->message}});
    return event("connection", {{"state", "back"}});
  }
  if (!news)
    return write_seldom(LogLevel::kInfo, "back", has_started_ ? "connected again" : "connected");
  write_seldom(LogLevel::kWarning, "lost",
               (has_started_ ? "connection lost, trying again: " : "not in yet, trying again: ") +
                   news->message);
}

void TrainNews::replaced(const Replaced& replaced) {
  if (is_json_) {
    event("replaced", {{"from_step", replaced.from_step},
                       {"to_step", replaced.to_step},
                       {"updates", replaced.updates},
                       {"residual", replaced.residual}});
  }
  std::string line = "goes on from the hub's state at step " + std::to_string(replaced.to_step);
  if (replaced.from_step == 0 && replaced.updates == 0) {
    if (!is_json_) write_seldom(LogLevel::kInfo, "replaced", line);
    return;
  }
  line += ", was at step " + std::to_string(replaced.from_step) + "; lost: ";
  line += std::to_string(replaced.updates) + " updates that were not merged, and a residual of ";
  write_seldom(LogLevel::kWarning, "replaced", line + three_digits(replaced.residual));
}

std::string TrainNews::way_on(const Ending& rest) const {
  const std::string where =
      has_started_ ? "at step " + std::to_string(rest.steps) + " of " + std::to_string(steps_)
                   : std::string("before the first step");
  if (has_started_ && rest.checkpoint.empty())
    return where + " without a checkpoint (--checkpoint, --resume), so its residual is lost; `" +
           rest.next + "` joins again";
  return where + "; go on with `" + rest.next + '`';
}

void TrainNews::stopped(const Ending& rest) const {
  if (!is_json_) return log_.info("stopped by the hub " + way_on(rest));
  nlohmann::ordered_json file;  // null: none
  if (!rest.checkpoint.empty()) file = rest.checkpoint;
  event("stopped", {{"step", rest.steps}, {"steps", steps_}, {"checkpoint", file}});
}

void TrainNews::interrupted(const Ending& rest) const { note("interrupted " + way_on(rest)); }

void TrainNews::checkpoint(const Result<std::uint64_t>& outcome,
                           const std::filesystem::path& file) const {
  if (!outcome.ok()) return log_.warning("no checkpoint: " + outcome.error().message);
  if (is_json_) event("checkpoint", {{"step", *outcome}, {"file", file.string()}});
}

void TrainNews::finished(const Ending& ending) const {
  const double time = time_s();
  const double rate =
      time > 0 ? static_cast<double>(ending.steps - std::min(first_step_, ending.steps)) / time : 0;
  if (is_json_)
    return event("finished", {{"cause", cause_name(ending.cause)},
                              {"steps", ending.steps},
                              {"time_s", time},
                              {"steps_per_s", rate},
                              {"digest", ending.digest},
                              {"late_steps", ending.late_steps},
                              {"reconnections", ending.reconnections},
                              {"differing_updates", ending.differing_updates},
                              {"non_finite_steps", ending.non_finite_steps}});
  const auto count = [](std::size_t number) { return number > 0 ? std::to_string(number) : ""; };
  std::cout << two_columns({{"ended", ending_text(ending.cause, ending.steps, steps_)},
                            {"score", evaluation_ ? evaluation_text(*evaluation_) : ""},
                            {"time", to_string(Seconds(time)) + (rate > 0 ? ", " : "") +
                                         pace_text(rate, {})},
                            {"reconnected", count(ending.reconnections)},
                            {"differing updates", count(ending.differing_updates)},
                            {"gradients not finite", count(ending.non_finite_steps)},
                            {"digest", ending.digest},
                            {"next", ending.next}})
            << std::flush;
}

}  // namespace longhaul::apps
