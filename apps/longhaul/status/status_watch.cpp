#include "apps/longhaul/status/status_watch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "longhaul/access/wall_time.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/grpc/grpc_transport.h"
#include "longhaul/hub/status_view.h"
#include "longhaul/session/interrupt.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kAnswerTimeout{10.0};

// Ctrl-C ends it early.
void pause_for(Seconds interval) {
  constexpr double kLongest = 1e8;
  ::poll(nullptr, 0, static_cast<int>(std::min(kLongest, 1e3 * interval.count())));
}

// One block per answer: in place of the last one on a terminal, below it elsewhere.
void show_block(const std::string& text, bool is_first) {
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  std::cout << (is_terminal ? "\033[H\033[J"
                : is_first  ? ""
                            : "\n")
            << access::to_text(access::wall_now()) << '\n'
            << text << std::flush;
}

Result<v1::StatusReport> ask_once(const HubAccess& access) {
  const std::unique_ptr<Connector> connector = make_grpc_connector(access.address, access.tls);
  return ask_for_status(*connector, access.name, access.token, deadline_after(kAnswerTimeout),
                        is_interrupted);
}

bool is_done(const v1::StatusReport& report) {
  return report.steps() > 0 && report.step() >= report.steps();
}

std::string json_line(const v1::StatusReport& report) {
  return status_json(report).dump(-1, ' ', false,
                                  nlohmann::ordered_json::error_handler_t::replace) +
         '\n';
}

}  // namespace

int watch_status(const HubAccess& access, Seconds interval, bool json) {
  notice_interrupts();
  bool was_there = false;
  for (; !is_interrupted(); pause_for(interval)) {
    const Result<v1::StatusReport> report = ask_once(access);
    if (is_interrupted()) break;
    if (!report.ok()) {
      const bool is_away = was_there && report.error().code != ErrorCode::kMismatch;
      if (!is_away || json) (void)complain("status", report.error());
      if (!is_away) return kExitFailed;
      if (!json)
        show_block("The hub is away, trying again: " + report.error().message + '\n', false);
      continue;
    }
    const bool is_first = !std::exchange(was_there, true);
    const bool is_over = is_done(*report);
    if (json) {
      std::cout << json_line(*report) << std::flush;
    } else {
      show_block(status_text(*report) + (is_over ? "\nThe run is done.\n" : ""), is_first);
    }
    if (is_over) return kExitDone;
  }
  return kExitInterrupted;
}

}  // namespace longhaul::apps
