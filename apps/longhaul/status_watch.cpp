#include "apps/longhaul/status_watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/longhaul/command.h"
#include "apps/longhaul/complain.h"
#include "apps/longhaul/interrupt.h"
#include "apps/longhaul/status_view.h"
#include "longhaul/access/wall_time.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/grpc/grpc_transport.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kAnswerTimeout{10.0};

// Ctrl-C ends it early.
void pause_for(Seconds interval) {
  constexpr double kLongest = 1e8;
  ::poll(nullptr, 0, static_cast<int>(std::min(kLongest, 1e3 * interval.count())));
}

// One block per answer: in place of the last one on a terminal, below it elsewhere.
class Screen {
 public:
  void show(const std::string& text) {
    if (is_terminal_) {
      std::cout << "\033[H\033[J" << text << std::flush;
    } else {
      std::cout << (is_first_ ? "" : "\n") << text << std::flush;
    }
    is_first_ = false;
  }

 private:
  const bool is_terminal_ = ::isatty(STDOUT_FILENO) != 0;
  bool is_first_ = true;
};

Result<v1::StatusReport> ask_once(const HubAccess& access) {
  const std::unique_ptr<Connector> connector = make_grpc_connector(access.address, access.tls);
  return ask_for_status(*connector, access.name, access.token, deadline_after(kAnswerTimeout),
                        is_interrupted);
}

std::string json_line(const v1::StatusReport& report) {
  return status_json(report).dump(-1, ' ', false,
                                  nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

}  // namespace

int watch_status(const HubAccess& access, const WatchOptions& options) {
  notice_interrupts();
  Screen screen;
  std::string last;
  for (; !is_interrupted(); pause_for(options.interval)) {
    const Result<v1::StatusReport> report = ask_once(access);
    if (is_interrupted()) break;
    const bool is_away = !report.ok() && report.error().code != ErrorCode::kMismatch;
    if (!report.ok() && (last.empty() || !is_away)) return complain("status", report.error());
    if (options.json) {
      if (is_away) std::cerr << "longhaul status: " << report.error().message << '\n';
      if (report.ok()) std::cout << json_line(*report) << std::flush;
      last = "seen";
      continue;
    }
    const std::string now = access::to_text(access::wall_now()) + '\n';
    if (report.ok()) last = status_text(*report);
    screen.show(
        now + (is_away ? "The hub is away, trying again: " + report.error().message + '\n' : last));
  }
  return kExitInterrupted;
}

}  // namespace longhaul::apps
