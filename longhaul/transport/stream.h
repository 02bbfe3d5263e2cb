// One ordered, two-way stream of frames between a replica and the hub: over gRPC, or inside one
// process.
#pragma once

#include <memory>
#include <string>

#include "longhaul/base/result.h"
#include "proto/longhaul.pb.h"

namespace longhaul {

using Frame = v1::Frame;

// The events of a stream. The transport makes one call at a time for each stream, from its own
// threads or from inside a call of the stream. An implementation passes the news on (to a mailbox)
// and does nothing else.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  virtual void on_frame(Frame frame) = 0;        // once for each read()
  virtual void on_written() = 0;                 // once for each write(): the next may follow
  virtual void on_closed(const Error& why) = 0;  // the last call
};

class Stream {
 public:
  virtual ~Stream() = default;

  // One more frame, please. Not again before it has come: what is not asked for waits at the
  // sender.
  virtual void read() = 0;
  // Never blocks. Not again before on_written.
  virtual void write(Frame frame) = 0;
  // on_closed follows, if it has not come yet. The last frames written may be lost.
  virtual void close() = 0;

  // The name of the other end by its certificate; empty without one.
  [[nodiscard]] virtual std::string peer_name() const = 0;
};

// Shared: a stream's user and its transport both hold it until on_closed, whoever ends first.
using StreamPtr = std::shared_ptr<Stream>;
using StreamEventsPtr = std::shared_ptr<StreamEvents>;

// The hub's side: told of every stream that a peer opens; returns who is told what
// happens to it, never nothing.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
  virtual StreamEventsPtr on_stream(StreamPtr stream) = 0;
};

// A replica's side: every call dials a connection of its own. Failures come as on_closed.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual StreamPtr open(StreamEventsPtr events) = 0;
};

}  // namespace longhaul
