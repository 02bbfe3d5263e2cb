#include "apps/longhaul/command/visit_options.h"

#include "apps/longhaul/command/command.h"

namespace longhaul::apps {

void add_visit_options(CLI::App& command, VisitCommandOptions& arguments) {
  command.add_option("--invite", arguments.invite, "File that `longhaul keys invite` has made");
  command.add_option("--hub", arguments.hub,
                     "HOST:PORT of a hub without TLS, in place of an invite");
  command.add_flag("--json", arguments.json, "One JSON object in place of the text");
}

Result<HubAccess> visit_access(const VisitCommandOptions& arguments, const std::string& name) {
  if (arguments.invite.empty() == arguments.hub.empty())
    return Error{ErrorCode::kInvalidArgument, "expected either --invite FILE, or --hub HOST:PORT"};
  return hub_access(arguments.invite, arguments.hub, arguments.hub.empty() ? "" : name);
}

}  // namespace longhaul::apps
