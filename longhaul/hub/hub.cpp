#include "longhaul/hub/hub.h"

#include <utility>

namespace longhaul {
namespace {

constexpr std::size_t kMostCommands = 1 << 16;
constexpr Seconds kTick{0.05};

}  // namespace

Hub::Hub(HubOptions options, const Clock& clock, const Log& log)
    : clock_(clock),
      inbox_(std::make_shared<Mailbox<Command>>(kMostCommands)),
      workers_(options.threads),
      errands_([inbox = inbox_](Errands::End end) {
        (void)inbox->push(Command(std::move(end)));  // refused at the end only
      }),
      core_(std::move(options), workers_, errands_, log) {}

Result<std::unique_ptr<Hub>> Hub::start(HubOptions options, const Clock& clock, const Log& log) {
  std::unique_ptr<Hub> hub(new Hub(std::move(options), clock, log));
  LONGHAUL_TRY(hub->core_.resume());
  hub->thread_ = std::jthread([hub = hub.get()](const std::stop_token& stop) { hub->run(stop); });
  return hub;
}

Hub::~Hub() {
  thread_.request_stop();
  (void)inbox_->try_push(Command(Errands::End([] {})));  // wakes it
  if (thread_.joinable()) thread_.join();
  // A round that is in the journal is told of, as if the hub had ended a moment later.
  errands_.stop();
  while (const std::optional<Command> command = inbox_->pop_until(Deadline::min())) {
    if (const auto* end = std::get_if<Errands::End>(&*command)) core_.on_errand(*end, clock_.now());
  }
  inbox_->close();
  // A stream that nobody has taken refers to the inbox that it lies in: neither would ever go.
  while (inbox_->pop_until(Deadline::min())) {
  }
}

StreamListener Hub::on_stream(StreamPtr stream) {
  StreamListener listener = listener_of(next_stream_++, inbox_of(inbox_));
  listener(StreamOpened(std::move(stream)));
  return listener;
}

void Hub::run(const std::stop_token& stop) {
  TimePoint next_tick = clock_.now();
  while (!stop.stop_requested()) {
    if (clock_.now() >= next_tick) {
      // Everything that came while the loop was busy has been heard: nobody is silent for the hub's
      // own sake.
      for (std::size_t left = inbox_->size(); left > 0 && take(Deadline::min()); --left) {
      }
      const TimePoint now = clock_.now();
      core_.on_tick(now);
      next_tick = time_after(now, kTick);
      publish_status();
    }
    (void)take(deadline_after(kTick));
  }
}

// Handles the next command, if one comes in time.
bool Hub::take(Deadline deadline) {
  std::optional<Command> command = inbox_->pop_until(deadline);
  if (!command) return false;
  if (auto* event = std::get_if<StreamEvent>(&*command)) {
    const bool is_over = std::holds_alternative<StreamClosed>(event->what);
    core_.on_event(std::move(*event), clock_.now());
    if (is_over) publish_status();  // an interrupt asks who is here
  } else {
    core_.on_errand(std::get<Errands::End>(*command), clock_.now());
  }
  return true;
}

void Hub::publish_status() {
  HubStatus status = core_.status();
  const MutexLock lock(mutex_);
  status_ = std::move(status);
}

HubStatus Hub::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void Hub::note_strangers(std::uint64_t count, const std::string& why) {
  (void)inbox_->try_push(
      Errands::End([this, count, why] { core_.on_strangers(count, why, clock_.now()); }));
}

void Hub::finish(v1::FinishCause cause) {
  (void)inbox_->try_push(Errands::End([this, cause] { core_.finish(cause); }));
}

}  // namespace longhaul
