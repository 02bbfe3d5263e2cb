// longhaul status: who is in a run, how far it is, what its plan is and why.
#include <iostream>
#include <memory>

#include "apps/longhaul/command.h"
#include "apps/longhaul/complain.h"
#include "apps/longhaul/status_view.h"
#include "apps/longhaul/visit_options.h"
#include "longhaul/exchange/ask.h"

namespace longhaul::apps {
namespace {

constexpr Seconds kStatusTimeout{30.0};

int run_status(const VisitArguments& arguments) {
  const Result<HubAccess> access = visit_access(arguments, "status");
  if (!access.ok()) return complain("status", access.error());
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
  const auto arguments = std::make_shared<VisitArguments>();  // shared with the callback
  CLI::App* status = program.add_subcommand("status", "How a run is: replicas, round, plan, links");
  add_visit_options(*status, *arguments);
  status->footer(
      "Examples:\n"
      "  longhaul status --invite berlin.invite\n"
      "  longhaul status --hub 127.0.0.1:7070 --json");
  status->callback([=, &run] { run = [=] { return run_status(*arguments); }; });
}

}  // namespace longhaul::apps
