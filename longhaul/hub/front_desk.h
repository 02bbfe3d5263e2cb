// Receives streams that have not said who they are: admits, refuses, answers those who only ask,
// and seats replicas that join. A stream leaves the desk when it belongs to a peer. Belongs to the
// hub's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/hub/first_model.h"
#include "longhaul/hub/hub_log.h"
#include "longhaul/hub/link_book.h"
#include "longhaul/hub/probe_guest.h"
#include "longhaul/hub/roster.h"
#include "longhaul/hub/run_end.h"
#include "longhaul/hub/training.h"

namespace longhaul {

// Is this replica invited? `certified` is the name on its certificate, empty without TLS.
using Admission = std::function<Status(const std::string& name, const std::string& token,
                                       const std::string& certified)>;

class FrontDesk {
 public:
  // `now` is the time of the event under way. Everyone is invited.
  FrontDesk(Roster& roster, LinkBook& links, FirstModel& model, HubLog& log, const TimePoint& now)
      : roster_(roster), links_(links), model_(model), log_(log), now_(now) {}
  // Only those are invited that `admit` takes.
  void admit_by(Admission admit) { admit_ = std::move(admit); }
  // No run any more: nobody joins.
  void close(const Error& why) { closed_ = why; }

  void on_opened(StreamId id, StreamPtr stream);
  void on_closed(StreamId id);
  // A write has ended. False: the stream is no guest's.
  bool on_written(StreamId id);
  // Closes streams that said nothing for so long.
  void end_silent(Seconds silence);

  // Has it not said anything yet?
  [[nodiscard]] bool is_new(StreamId id) const { return newcomers_.contains(id); }
  // The first frame of a stream says who it is. Not invited: the stream is refused.
  bool admits(StreamId id, std::uint32_t protocol, const std::string& name,
              const std::string& token);
  // The slot for a replica that may join now. Nothing: it was refused. `training`: null before the
  // start.
  std::optional<std::size_t> place_for(StreamId id, const v1::Join& join, const RunEnd& end,
                                       const Training* training);
  // Precondition: place_for() gave the slot, and the name has entered without a connection.
  void seat(StreamId id, const v1::Join& join, std::size_t slot, Lanes lanes,
            const Training* training);
  // The lane joins its peer. Nothing: there is no such peer, and the lane was refused.
  Peer* seat_lane(StreamId id, const v1::OpenLane& lane);
  // It only measures its link.
  void seat_guest(StreamId id, const v1::OpenProbe& open);
  void on_guest(StreamId id, const Frame& frame);

  void answer(StreamId id, Frame frame);
  void refuse(StreamId id, const std::string& who, const Error& why);
  // Refuses without an answer.
  void turn_away(StreamId id, const std::string& why);

  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::uint64_t rejected() const { return rejected_; }  // of guests

 private:
  struct Newcomer {
    StreamPtr stream;
    TimePoint since;
  };
  Result<std::size_t> slot_for(const v1::Join& join, const RunEnd& end,
                               const Training* training) const;
  Error name_taken(const Peer& earlier);

  Roster& roster_;
  LinkBook& links_;
  FirstModel& model_;
  HubLog& log_;
  const TimePoint& now_;
  Admission admit_;
  std::map<StreamId, Newcomer> newcomers_;
  std::map<StreamId, ProbeGuest> guests_;
  std::optional<Error> closed_;
  std::uint64_t refused_ = 0;
  std::uint64_t rejected_ = 0;
};

}  // namespace longhaul
