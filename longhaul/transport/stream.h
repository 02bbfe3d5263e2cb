// One ordered, two-way stream of frames between a replica and the hub: over gRPC, or inside one
// process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "longhaul/base/result.h"
#include "proto/longhaul.pb.h"

namespace longhaul {

using Frame = v1::Frame;

class Stream {
 public:
  virtual ~Stream() = default;

  // One more frame, please. Not again before it has come: what is not asked for waits at the
  // sender.
  virtual void read() = 0;
  // Never blocks. Not again before FrameWritten.
  virtual void write(Frame frame) = 0;
  // StreamClosed follows, if it has not come yet. The last frames written may be lost.
  virtual void close() = 0;

  // The name of the other end by its certificate; empty without one.
  [[nodiscard]] virtual std::string peer_name() const = 0;
};

// Shared: a stream's user and its transport both hold it until StreamClosed, whoever ends first.
using StreamPtr = std::shared_ptr<Stream>;

// The news of a stream.
using StreamOpened = StreamPtr;       // the acceptor's own news: no transport sends it
using FrameArrived = Frame;           // once for each read()
using FrameWritten = std::monostate;  // once for each write(): the next may follow
using StreamClosed = Error;           // the last one
using StreamNews = std::variant<FrameWritten, StreamOpened, FrameArrived, StreamClosed>;

// Hears of one stream. The transport makes one call at a time for each stream, from its own threads
// or from inside a call of the stream. The listener passes the news on (to a mailbox) and does
// nothing else.
using StreamListener = std::function<void(StreamNews)>;

// The hub's side: told of every stream that a peer opens; returns its listener, never nothing.
// Called from threads of the transport. Its owner outlives the transport.
using Acceptor = std::function<StreamListener(StreamPtr)>;

// Opens streams to the hub.
// A replica's side: every call dials a connection of its own. Failures come as StreamClosed.
class Connector {
 public:
  virtual ~Connector() = default;
  virtual StreamPtr open(StreamListener listener) = 0;
};

}  // namespace longhaul
