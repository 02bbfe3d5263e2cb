// The news of many streams as values in one mailbox: how a loop hears of its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "longhaul/base/mailbox.h"
#include "longhaul/transport/stream.h"

namespace longhaul {

using StreamId = std::uint64_t;

struct StreamEvent {
  StreamId stream = 0;
  StreamNews what;
};

// Where a loop's events go. It must not block: a loop that writes hears of it from inside its own
// call.
using StreamInbox = std::function<void(StreamEvent)>;

// Puts events into a mailbox of values that can be an event. The mailbox is shared: streams end
// when they want. A full or closed one drops the event: the first cannot be (a stream has one event
// of each kind on the way), the second is the end.
template <typename Command>
StreamInbox inbox_of(std::shared_ptr<Mailbox<Command>> mailbox) {
  return [mailbox = std::move(mailbox)](StreamEvent event) {
    (void)mailbox->try_push(Command(std::move(event)));
  };
}

// Passes the news of one stream on.
inline StreamListener listener_of(StreamId id, StreamInbox inbox) {
  return [id, inbox = std::move(inbox)](StreamNews what) {
    inbox({.stream = id, .what = std::move(what)});
  };
}

}  // namespace longhaul
