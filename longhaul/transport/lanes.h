// The data lanes of one replica, as either end sees them: what is to be sent is spread over them,
// what comes is put together. Belongs to one loop.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "longhaul/transport/cargo.h"
#include "longhaul/transport/rate_cap.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

class Lanes {
 public:
  // `rate`: of what is sent, at most; nothing: as fast as the lanes take it.
  explicit Lanes(const CargoOptions& limits, const std::optional<Bandwidth>& rate = std::nullopt);

  // A stream that is ready for chunks; reading from it begins.
  void add(StreamId id, StreamPtr stream);
  [[nodiscard]] bool has(StreamId id) const { return lanes_.contains(id); }
  [[nodiscard]] std::size_t count() const { return lanes_.size(); }

  // Waits in a queue while every lane is busy.
  void send(TransferId id, ByteRope bytes, std::optional<v1::Attendance> attendance = {});
  // Time passes, for the rate: at least ten times a second.
  void on_tick(TimePoint now);
  // Transfers of which something is still to be handed over.
  [[nodiscard]] std::size_t waiting() const { return outgoing_.count(); }
  [[nodiscard]] bool is_sending(Cargo cargo) const { return sending(cargo).has_value(); }
  // How far a transfer of that kind is, if one is on its way.
  [[nodiscard]] std::optional<TransferProgress> sending(Cargo cargo) const {
    return outgoing_.progress(cargo);
  }
  [[nodiscard]] std::optional<TransferProgress> receiving(Cargo cargo) const {
    return incoming_.progress(cargo);
  }

  void on_written(StreamId id);
  // The transfer that is complete with it. An error ends the connection: a chunk is missing for
  // good.
  Result<std::optional<Arrival>> on_chunk(StreamId id, v1::Chunk& chunk, TimePoint now);

  // While it does not, what comes stays with the peer, and the peer with what it has.
  void set_reading(bool is_reading);

  // Closes every lane and forgets what was on its way.
  void close();

 private:
  struct Lane {
    StreamPtr stream;
    bool is_writing = false;
    bool is_to_read = false;  // when reading goes on
  };
  void read_from(Lane& lane) const;
  void write_on(Lane& lane);

  std::optional<RateCap> cap_;
  bool is_reading_ = true;
  std::map<StreamId, Lane> lanes_;
  OutgoingCargo outgoing_;
  IncomingCargo incoming_;
};

}  // namespace longhaul
