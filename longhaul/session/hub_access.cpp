#include "longhaul/session/hub_access.h"

#include "longhaul/access/invite.h"
#include "longhaul/access/names.h"
#include "longhaul/access/wall_time.h"

namespace longhaul {
namespace {

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidArgument, what}; }

Result<HubAccess> without_tls(const std::string& hub, const std::string& name) {
  const Result<access::Address> address = access::parse_address(hub);
  if (!address.ok()) return Error(address.error()).within("--hub");
  if (name.empty()) return wrong("--hub: expected --name NAME beside it");
  const Status is_name = access::check_name(name);
  if (!is_name.ok()) return Error(is_name.error()).within("--name");
  return HubAccess{.address = hub, .name = name};
}

}  // namespace

Result<HubAccess> hub_access(const std::string& invite, const std::string& hub,
                             const std::string& name) {
  if (invite.empty() == hub.empty())
    return wrong("expected either --invite FILE, or --hub HOST:PORT with --name NAME");
  if (!hub.empty()) return without_tls(hub, name);
  if (!name.empty()) return wrong("--name: the invite has it");
  const access::Invite read = LONGHAUL_TRY(access::read_invite(invite, access::wall_now()));
  return HubAccess{
      .address = read.address, .name = read.name, .token = read.token, .tls = read.keys};
}

}  // namespace longhaul
