// Measures the link to a hub, beside whatever runs there: the round trip, and the rate of one
// connection in each direction.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/units.h"
#include "longhaul/link/rate_estimator.h"
#include "longhaul/transport/stream_mailbox.h"

namespace longhaul {

// Both directions of a link that was probed.
struct ProbedLink {
  Seconds round_trip{};  // the least
  TransferSample up;     // each is the last and largest transfer of its direction
  TransferSample down;
};

// Precondition: the transfer took some time.
inline Bandwidth rate_of(const TransferSample& probed) {
  return {.bytes_per_second = probed.bytes / probed.duration.count()};
}

class LinkProbe {
 public:
  // Called with what is under way ("up, 4 MB").
  using Progress = std::function<void(const std::string&)>;
  LinkProbe(Connector& connector, const Clock& clock, Progress progress);
  ~LinkProbe();
  LinkProbe(const LinkProbe&) = delete;
  LinkProbe& operator=(const LinkProbe&) = delete;

  // Takes a few seconds on any link: sizes double until a transfer takes long enough to be
  // trusted.
  Result<ProbedLink> measure(const std::string& name, const std::string& token);

 private:
  Status open(const std::string& name, const std::string& token);
  Result<Seconds> round_trip();
  Result<TransferSample> send_up(std::uint64_t bytes);
  Result<TransferSample> ask_down(std::uint64_t bytes);
  template <typename Transfer>
  Result<TransferSample> grown(const std::string& direction, Transfer transfer);
  Result<Frame> next_frame();
  Status write(Frame frame);

  const Clock& clock_;
  Progress progress_;
  std::shared_ptr<Mailbox<StreamEvent>> events_;  // shared with the stream
  StreamPtr stream_;
};

}  // namespace longhaul
