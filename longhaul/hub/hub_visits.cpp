// Those who only look: what is there to do, how is the run, how good is the link.
#include <utility>

#include "longhaul/hub/hub_core.h"
#include "longhaul/hub/status_report.h"

namespace longhaul {
namespace {

constexpr std::size_t kMostGuests = 8;

}  // namespace

void HubCore::on_ask(StreamId id, const v1::Ask& ask) {
  if (!is_admitted(id, {.protocol = ask.protocol(), .name = ask.name(), .token = ask.token()}))
    return;
  Frame frame;
  *frame.mutable_task() = options_.task;
  newcomers_.at(id).stream->write(std::move(frame));
}

void HubCore::on_ask_status(StreamId id, const v1::AskStatus& ask) {
  if (!is_admitted(id, {.protocol = ask.protocol(), .name = ask.name(), .token = ask.token()}))
    return;
  Frame frame;
  *frame.mutable_status_report() = report_of(status(), options_.task);
  newcomers_.at(id).stream->write(std::move(frame));
}

void HubCore::on_probe(StreamId id, const v1::OpenProbe& open, TimePoint now) {
  if (!is_admitted(id, {.protocol = open.protocol(), .name = open.name(), .token = open.token()}))
    return;
  if (guests_.size() >= kMostGuests)
    return refuse(id, open.name(), {ErrorCode::kClosed, "others measure their links right now"});
  guests_.try_emplace(id, std::move(newcomers_.extract(id).mapped().stream), now);
}

void HubCore::on_guest(StreamId id, const Frame& frame, TimePoint now) {
  const auto guest = guests_.find(id);
  if (guest == guests_.end()) return;
  const Status taken = guest->second.on_frame(frame, now);
  if (taken.ok()) return;
  ++rejected_;
  warn("rejected: " + taken.error().message);
  guests_.erase(guest);
}

}  // namespace longhaul
