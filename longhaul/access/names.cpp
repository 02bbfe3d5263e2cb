#include "longhaul/access/names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace longhaul::access {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kMostNameLetters = 64;  // of a common name, RFC 5280
constexpr std::size_t kMostHostLetters = 253;
constexpr std::size_t kMostLabelLetters = 63;

bool consists_of(std::string_view text, std::string_view extra) {
  return std::ranges::all_of(text, [extra](char letter) {
    return kDigits.find(letter) != std::string_view::npos ||
           kLetters.find(letter) != std::string_view::npos ||
           extra.find(letter) != std::string_view::npos;
  });
}

// Makes a user's text fit for one line of a message.
std::string shown(std::string_view text) {
  std::string line(text.substr(0, 80));
  std::ranges::replace_if(
      line, [](char letter) { return letter < ' ' || letter == '\x7f'; }, '?');
  return line.empty() ? "nothing" : line;
}

Error unexpected(const std::string& expected, std::string_view got) {
  return Error{ErrorCode::kInvalidArgument, "expected " + expected + ", got " + shown(got)};
}

// The address in its shortest form; empty if it is none of that family.
std::string shortest_ip(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  if (::inet_pton(family, text.c_str(), bytes.data()) != 1) return {};
  return ::inet_ntop(family, bytes.data(), shortest.data(), shortest.size());
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kMostLabelLetters && consists_of(label, "-_") &&
         label.front() != '-' && label.back() != '-';
}

bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > kMostHostLetters) return false;
  for (;;) {
    const std::size_t dot = host.find('.');
    const std::string_view label = host.substr(0, dot);
    if (!is_label(label)) return false;
    // 10.0.0.256 is a mistyped address and no name: no top-level domain is a number.
    if (dot == std::string_view::npos)
      return label.find_first_not_of(kDigits) != std::string_view::npos;
    host.remove_prefix(dot + 1);
  }
}

}  // namespace

Status check_name(std::string_view name) {
  const bool is_name = !name.empty() && name.size() <= kMostNameLetters &&
                       consists_of(name, "._-") && name.front() != '.' && name.front() != '-';
  if (is_name) return Done{};
  return unexpected("a name of 1 to 64 letters, digits and . _ - (not . or - in front)", name);
}

Result<std::string> normal_host(std::string_view host) {
  const std::string text(host);
  // The C functions behind stop at a NUL, which is in no host.
  if (text.find('\0') == std::string::npos) {
    for (const int family : {AF_INET, AF_INET6})
      if (std::string ip = shortest_ip(family, text); !ip.empty()) return ip;
  }
  if (!is_host_name(host))
    return unexpected("a host such as hub.example.org, 192.0.2.7 or 2001:db8::7", host);
  std::string name = text;
  std::ranges::transform(name, name.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return name;
}

bool is_ip(const std::string& normal_host) {
  return !shortest_ip(AF_INET, normal_host).empty() || !shortest_ip(AF_INET6, normal_host).empty();
}

Result<Address> parse_address(std::string_view text) {
  const Error wrong = unexpected(
      "HOST:PORT such as hub.example.org:4242 or [2001:db8::7]:4242 "
      "with a port from 1 to 65535",
      text);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view host = text.substr(0, colon);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets the last group of an IPv6 address would be taken for the port.
  if (is_bracketed != (host.find(':') != std::string_view::npos)) return wrong;
  const std::string_view digits = text.substr(colon + 1);
  Address address;
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  const bool is_port = failure == std::errc{} && end == digits.data() + digits.size() &&
                       address.port != 0 && digits.front() != '0';
  Result<std::string> normal = normal_host(host);
  if (!is_port || !normal.ok()) return wrong;
  address.host = std::move(normal).value();
  return address;
}

std::string to_text(const Address& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

bool is_loopback(const Address& address) {
  return address.host == "localhost" || address.host == "::1" || address.host.starts_with("127.");
}

}  // namespace longhaul::access
