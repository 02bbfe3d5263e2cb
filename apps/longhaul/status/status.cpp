// longhaul status: who is in a run, how far it is, what its plan is and why.
#include <iostream>
#include <memory>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "apps/longhaul/command/visit_options.h"
#include "apps/longhaul/status/status_watch.h"
#include "longhaul/exchange/ask.h"
#include "longhaul/hub/status_view.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kStatusTimeout{30.0};

int run_status(const VisitCommandOptions& arguments) {
  const Result<HubAccess> access = visit_access(arguments, "status");
  if (!access.ok()) return complain("status", access.error());
  if (arguments.is_watching) {
    const Result<Seconds> interval = parse_duration(arguments.interval);
    if (!interval.ok()) return complain("status", Error(interval.error()).within("--watch"));
    return watch_status(*access, *interval, arguments.json);
  }
  const std::unique_ptr<Connector> connector = make_grpc_connector(access->address, access->tls);
  const Result<v1::StatusReport> report =
      ask_for_status(*connector, access->name, access->token, deadline_after(kStatusTimeout));
  if (!report.ok()) return complain("status", report.error());
  if (arguments.json) {
    std::cout << status_json(*report).dump(2, ' ', false,
                                           nlohmann::ordered_json::error_handler_t::replace)
              << '\n';
  } else {
    std::cout << status_text(*report);
  }
  return kExitDone;
}

}  // namespace

void add_status(CLI::App& program, Run& run) {
  const auto arguments = std::make_shared<VisitCommandOptions>();  // shared with the callback
  CLI::App* status =
      program.add_subcommand("status", "Show the state of a run: replicas, round, plan, links");
  add_visit_options(*status, *arguments);
  const CLI::Option* watch = status
                                 ->add_option("--watch", arguments->interval,
                                              "Ask again at this interval, until the run is done "
                                              "or Ctrl-C; with --json, one line per answer")
                                 ->expected(0, 1)
                                 ->capture_default_str();
  status->footer(
      "Examples:\n"
      "  longhaul status --invite berlin.invite\n"
      "  longhaul status --invite berlin.invite --watch 5s\n"
      "  longhaul status --hub 127.0.0.1:7070 --json");
  status->callback([=, &run] {
    arguments->is_watching = watch->count() > 0;
    run = [=] { return run_status(*arguments); };
  });
}

}  // namespace longhaul::apps
