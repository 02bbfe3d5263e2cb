#include "apps/longhaul/train_options.h"

#include "apps/longhaul/rate_option.h"
#include "longhaul/access/invite.h"
#include "longhaul/access/names.h"
#include "longhaul/access/wall_time.h"

namespace longhaul::apps {

CLI::App* add_train_options(CLI::App& program, TrainArguments& arguments) {
  CLI::App* train = program.add_subcommand("train", "Join a hub as a replica and train");
  train->add_option("--invite", arguments.invite, "File that `longhaul keys invite` has made");
  train->add_option("--hub", arguments.hub,
                    "HOST:PORT of a hub without TLS, in place of an invite");
  train->add_option("--name", arguments.name, "Name of this replica, with --hub");
  train->add_option("--slot", arguments.slot,
                    "Which replica of the scenario to be, from 0 (default: the hub chooses)");
  train->add_option("--data", arguments.data, "Where the data lies, in place of the scenario's");
  train->add_option("--save", arguments.save, "Write the model here at the end (safetensors)");
  train->add_option("--stamps", arguments.stamps,
                    "Directory for copies of the shared model, one per evaluation");
  add_rate(*train, arguments.rate, "Send updates at this rate at most, such as 20mbit");
  train->add_flag("--evaluate", arguments.evaluate,
                  "Do not train: score the copies named on standard input, one per line");
  train->add_flag("--json", arguments.json, "Events, one JSON object per line");
  train->footer(
      "Model, data and recipe come from the hub. Ctrl-C leaves the run in order; a second one "
      "ends\n"
      "at once.\n\nExamples:\n"
      "  longhaul train --invite berlin.invite\n"
      "  longhaul train --hub 127.0.0.1:7070 --name a");
  return train;
}

Result<HubAccess> hub_access(const TrainArguments& arguments) {
  const auto wrong = [](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, what};
  };
  if (arguments.invite.empty() == arguments.hub.empty())
    return wrong("expected --invite FILE, or --hub HOST:PORT with --name NAME");
  if (!arguments.hub.empty()) {
    const Result<access::Address> address = access::parse_address(arguments.hub);
    if (!address.ok()) return Error(address.error()).within("--hub");
    if (arguments.name.empty()) return wrong("--hub: expected --name NAME beside it");
    return HubAccess{.address = arguments.hub, .name = arguments.name};
  }
  if (!arguments.name.empty()) return wrong("--name: the invite has it");
  const Result<access::Invite> invite = access::read_invite(arguments.invite, access::wall_now());
  if (!invite.ok()) return Error(invite.error()).within(arguments.invite);
  return HubAccess{.address = invite->address,
                   .name = invite->name,
                   .token = invite->token,
                   .tls = TlsKeys{.authority = invite->ca_pem,
                                  .certificate = invite->identity.certificate_pem,
                                  .key = invite->identity.key_pem}};
}

}  // namespace longhaul::apps
