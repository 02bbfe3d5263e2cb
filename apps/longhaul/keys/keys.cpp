// longhaul keys: who may join a hub. Certificates, invites, revocation.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/longhaul/command/command.h"
#include "apps/longhaul/command/complain.h"
#include "longhaul/access/authority.h"
#include "longhaul/access/members.h"
#include "longhaul/base/text.h"

namespace longhaul::apps {
namespace {

using KeysJson = nlohmann::ordered_json;

// As written on the command line.
struct KeysCommandOptions {
  std::string directory;
  std::vector<std::string> hosts;
  access::InviteOptions invite;
  std::string out;
  bool json = false;
};

// Paths need not be UTF-8; JSON is.
void print_json(const KeysJson& json) {
  std::cout << json.dump(2, ' ', false, KeysJson::error_handler_t::replace) << '\n';
}

int init_keys(const KeysCommandOptions& arguments) {
  const Result<access::CertificateFacts> made =
      access::create_authority(arguments.directory, arguments.hosts, access::wall_now());
  if (!made.ok()) return complain("keys init", made.error());
  if (arguments.json) {
    print_json({{"directory", arguments.directory},
                {"hosts", made->hosts},
                {"expires", access::to_text(made->valid_until)}});
    return kExitDone;
  }
  std::cout << "keys:  " << arguments.directory << ", valid until "
            << access::to_text(made->valid_until) << "\nhosts: " << joined(made->hosts)
            << "\nNext:  longhaul keys invite " << arguments.directory
            << " NAME HOST:PORT, for every replica\n";
  return kExitDone;
}

int invite_replica(const KeysCommandOptions& arguments) {
  access::InviteOptions request = arguments.invite;
  request.file = arguments.out;
  const Result<access::Invited> invited =
      access::invite(arguments.directory, request, access::wall_now());
  if (!invited.ok()) return complain("keys invite", invited.error());
  if (arguments.json) {
    print_json({{"name", request.name},
                {"file", invited->file.string()},
                {"address", invited->address},
                {"expires", access::to_text(invited->expires)},
                {"is_host_new", invited->is_host_new}});
    return kExitDone;
  }
  std::cout << "invite: " << invited->file.string() << ", for " << request.name << " to join "
            << invited->address << " until " << access::to_text(invited->expires)
            << "\nIt holds a private key: bring it to the replica over a safe way, then delete it "
               "here.\n";
  if (invited->is_host_new)
    std::cout << "The hub's certificate now names this host too: restart a hub that runs.\n";
  return kExitDone;
}

int revoke_replica(const KeysCommandOptions& arguments) {
  const std::string& name = arguments.invite.name;
  const Result<access::WallTime> since =
      access::revoke(arguments.directory, name, access::wall_now());
  if (!since.ok()) return complain("keys revoke", since.error());
  if (arguments.json) {
    print_json({{"name", name}, {"revoked", access::to_text(*since)}});
  } else {
    std::cout << name << " cannot join any more, since " << access::to_text(*since) << '\n';
  }
  return kExitDone;
}

std::string state_of(const access::Member& member, access::WallTime now) {
  if (member.revoked) return "revoked";
  return now > member.expires ? "expired" : "valid";
}

KeysJson json_of(const std::vector<access::Member>& members, access::WallTime now) {
  KeysJson list = KeysJson::array();
  for (const access::Member& member : members) {
    list.push_back({{"name", member.name},
                    {"issued", access::to_text(member.issued)},
                    {"expires", access::to_text(member.expires)},
                    {"revoked", nullptr},
                    {"state", state_of(member, now)}});
    if (member.revoked) list.back()["revoked"] = access::to_text(*member.revoked);
  }
  return {{"members", list}};
}

void print_members(const std::vector<access::Member>& members, access::WallTime now) {
  std::size_t widest = 4;
  for (const access::Member& member : members) widest = std::max(widest, member.name.size());
  const auto row = [width = static_cast<int>(widest)](
                       const std::string& name, const std::string& issued,
                       const std::string& expires, const std::string& state) {
    std::printf("%-*s  %-20s  %-20s  %s\n", width, name.c_str(), issued.c_str(), expires.c_str(),
                state.c_str());
  };
  row("name", "issued", "expires", "state");
  for (const access::Member& member : members) {
    const std::string since = member.revoked ? " " + access::to_text(*member.revoked) : "";
    row(member.name, access::to_text(member.issued), access::to_text(member.expires),
        state_of(member, now) + since);
  }
}

int list_members(const KeysCommandOptions& arguments) {
  const auto members = access::list_members(arguments.directory);
  if (!members.ok()) return complain("keys list", members.error());
  if (arguments.json) {
    print_json(json_of(*members, access::wall_now()));
  } else if (members->empty()) {
    std::cout << "Nobody is invited yet: longhaul keys invite " << arguments.directory
              << " NAME HOST:PORT\n";
  } else {
    print_members(*members, access::wall_now());
  }
  return kExitDone;
}

// The arguments live as long as the callbacks that read them.
using SharedArguments = std::shared_ptr<KeysCommandOptions>;

CLI::App* add_keys_subcommand(CLI::App& keys, const std::string& name, const std::string& summary,
                              const SharedArguments& arguments) {
  CLI::App* subcommand = keys.add_subcommand(name, summary);
  subcommand->add_option("DIR", arguments->directory, "Directory of the hub's keys")->required();
  subcommand->add_flag("--json", arguments->json, "One JSON object instead of text");
  return subcommand;
}

void add_init(CLI::App& keys, Run& run, const SharedArguments& arguments) {
  CLI::App* init = add_keys_subcommand(keys, "init", "Make the keys of a hub, once", arguments);
  init->footer(
      "Example:\n"
      "  longhaul keys init hub-keys --host hub.example.org --host 192.0.2.7");
  init->add_option("--host", arguments->hosts,
                   "A name or IP address at which replicas reach the hub, besides localhost and "
                   "127.0.0.1; repeatable")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  init->callback([arguments, &run] { run = [arguments] { return init_keys(*arguments); }; });
}

void add_invite(CLI::App& keys, Run& run, const SharedArguments& arguments) {
  CLI::App* invite =
      add_keys_subcommand(keys, "invite", "Write the file that lets a replica join", arguments);
  invite->footer(
      "Examples:\n"
      "  longhaul keys invite hub-keys berlin hub.example.org:4242\n"
      "  longhaul keys invite hub-keys berlin hub.example.org:4242 --days 30 --replace\n"
      "  longhaul keys invite hub-keys oslo '[2001:db8::7]:4242' --out /media/stick/oslo.invite");
  invite
      ->add_option("NAME", arguments->invite.name,
                   "Name of the replica: up to 64 letters, digits and . _ -")
      ->required();
  invite->add_option("HOST:PORT", arguments->invite.address, "Where the replica dials the hub")
      ->required();
  invite->add_option("--days", arguments->invite.days, "Days until the invite expires")
      ->capture_default_str()
      ->check(CLI::Range(1, access::kMostInviteDays));
  invite->add_flag("--replace", arguments->invite.replace,
                   "Replace the earlier invite of this name, which becomes invalid");
  invite->add_flag("--force", arguments->invite.is_forced,
                   "With --replace: also if the file there is no invite");
  invite->add_option("--out", arguments->out, "File to write (default: NAME.invite)");
  invite->callback([arguments, &run] { run = [arguments] { return invite_replica(*arguments); }; });
}

void add_revoke(CLI::App& keys, Run& run, const SharedArguments& arguments) {
  CLI::App* revoke =
      add_keys_subcommand(keys, "revoke", "Refuse a replica the next time it joins", arguments);
  revoke->footer(
      "Example:\n"
      "  longhaul keys revoke hub-keys berlin");
  revoke->add_option("NAME", arguments->invite.name, "Name of the replica")->required();
  revoke->callback([arguments, &run] { run = [arguments] { return revoke_replica(*arguments); }; });
}

void add_list(CLI::App& keys, Run& run, const SharedArguments& arguments) {
  CLI::App* list = add_keys_subcommand(keys, "list",
                                       "Who is invited: name, issued, expires, revoked", arguments);
  list->footer(
      "Example:\n"
      "  longhaul keys list hub-keys --json");
  list->callback([arguments, &run] { run = [arguments] { return list_members(*arguments); }; });
}

}  // namespace

void add_keys(CLI::App& program, Run& run) {
  CLI::App* keys = program.add_subcommand(
      "keys", "Manage who may join a hub: certificates, invites, revocation");
  keys->require_subcommand(1);
  keys->footer(
      "Example, on the machine of the hub:\n"
      "  longhaul keys init hub-keys --host hub.example.org\n"
      "  longhaul keys invite hub-keys berlin hub.example.org:4242   # writes berlin.invite\n"
      "  longhaul keys list hub-keys\n"
      "  longhaul keys revoke hub-keys berlin\n"
      "\nExits with 0 when done, 1 when keys are missing, there already or unreadable, 2 on wrong "
      "use.");
  const auto arguments = std::make_shared<KeysCommandOptions>();
  add_init(*keys, run, arguments);
  add_invite(*keys, run, arguments);
  add_revoke(*keys, run, arguments);
  add_list(*keys, run, arguments);
}

}  // namespace longhaul::apps
