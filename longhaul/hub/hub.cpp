#include "longhaul/hub/hub.h"

#include <utility>

namespace longhaul {
namespace {

constexpr std::size_t kMostCommands = 1 << 16;
constexpr Seconds kTick{0.05};

}  // namespace

// Streams outlive the hub for a moment: they hold on to this.
class Hub::Inbox final : public StreamInbox {
 public:
  // A full or closed box drops it: the first cannot be (streams have one event each of a kind on
  // the way), the second is the end.
  void put(StreamEvent event) override { (void)commands.try_push(Command(std::move(event))); }
  Mailbox<Command> commands{kMostCommands};
};

Hub::Hub(HubOptions setup, const Clock& clock, const Log& log, Options options)
    : clock_(clock),
      inbox_(std::make_shared<Inbox>()),
      workers_(options.threads),
      errands_([inbox = inbox_](Errands::End end) {
        (void)inbox->commands.push(Command(std::move(end)));  // refused at the end only
      }),
      core_(std::move(setup), workers_, errands_, log) {
  if (options.watcher) core_.watch(std::move(options.watcher));
}

Result<std::unique_ptr<Hub>> Hub::start(HubOptions setup, const Clock& clock, const Log& log,
                                        Options options) {
  std::unique_ptr<Hub> hub(new Hub(std::move(setup), clock, log, std::move(options)));
  const Status resumed = hub->core_.resume();
  if (!resumed.ok()) return resumed.error();
  hub->thread_ = std::jthread([hub = hub.get()](const std::stop_token& stop) { hub->run(stop); });
  return hub;
}

Hub::~Hub() {
  thread_.request_stop();
  (void)inbox_->commands.try_push(Command(Errands::End([] {})));  // wakes it
  if (thread_.joinable()) thread_.join();
  // A round that is in the journal is told of, as if the hub had ended a moment later.
  errands_.stop();
  while (const std::optional<Command> command = inbox_->commands.pop_until(Deadline::min())) {
    if (const auto* end = std::get_if<Errands::End>(&*command)) core_.on_errand(*end, clock_.now());
  }
  inbox_->commands.close();
  // A stream that nobody has taken refers to the inbox that it lies in: neither would ever go.
  while (inbox_->commands.pop_until(Deadline::min())) {
  }
}

StreamEventsPtr Hub::on_stream(StreamPtr stream) {
  const StreamId id = next_stream_++;
  inbox_->put({.stream = id, .what = StreamOpened{std::move(stream)}});
  return std::make_shared<StreamPost>(id, inbox_);
}

void Hub::run(const std::stop_token& stop) {
  TimePoint next_tick = clock_.now();
  while (!stop.stop_requested()) {
    if (clock_.now() >= next_tick) {
      // What came while the loop was busy has been heard: nobody is silent for the hub's own sake.
      for (std::size_t left = inbox_->commands.size(); left > 0 && take(Deadline::min()); --left) {
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
  std::optional<Command> command = inbox_->commands.pop_until(deadline);
  if (!command) return false;
  if (auto* event = std::get_if<StreamEvent>(&*command)) {
    const bool is_over = std::holds_alternative<StreamClosed>(event->what);
    core_.on_event(std::move(*event), clock_.now());
    if (is_over) publish_status();  // an interrupt asks who is here
  } else if (const auto* end = std::get_if<Errands::End>(&*command)) {
    core_.on_errand(*end, clock_.now());
  } else if (const auto* strangers = std::get_if<Strangers>(&*command)) {
    core_.on_strangers(strangers->count, strangers->why, clock_.now());
  } else {
    core_.finish(std::get<Finish>(*command).cause);
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
  (void)inbox_->commands.try_push(Strangers{.count = count, .why = why});
}

void Hub::finish(v1::FinishCause cause) { (void)inbox_->commands.try_push(Finish{.cause = cause}); }

}  // namespace longhaul
