#include "trainer/local_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace longhaul::trainer {

Result<std::string> local_address_towards(const std::string& host, std::uint16_t port) {
  const addrinfo hints{.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    return Error{ErrorCode::kNotFound, host + ": " + gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const int descriptor = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool is_known = descriptor >= 0 &&
                        ::connect(descriptor, found->ai_addr, found->ai_addrlen) == 0 &&
                        ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  if (descriptor >= 0) ::close(descriptor);
  std::array<char, NI_MAXHOST> text{};
  if (!is_known || getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text.data(),
                               text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return Error{ErrorCode::kIo, host + ": no way to it from this machine"};
  return std::string(text.data());
}

}  // namespace longhaul::trainer
