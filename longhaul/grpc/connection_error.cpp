#include "longhaul/grpc/connection_error.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace longhaul {
namespace {

// The host could not be reached: a piece of gRPC's text in small letters, and our own words for it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNoAnswer{{
    {"connection refused", "connection refused"},
    {"no route to host", "no route to this host"},
    {"unreachable", "its network cannot be reached"},
    {"timed out", "nothing came in time"},
    {"timeout", "nothing came in time"},
    {"deadline", "nothing came in time"},
    {"fd shutdown", "nothing came in time"},
}};

// The host answered as no hub does.
constexpr std::array<std::string_view, 2> kOtherProgram{
    {"failed parsing http/2", "http1.x server"}};

constexpr std::array<std::string_view, 4> kHandshake{
    {"handshake", "socket closed", "reset by peer", "broken pipe"}};

std::string small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return small;
}

bool has_any(std::string_view text, const auto& phrases) {
  return std::ranges::any_of(phrases, [&](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

std::string_view no_answer(std::string_view text) {
  for (const auto& [sign, meaning] : kNoAnswer) {
    if (text.find(sign) != std::string_view::npos) return meaning;
  }
  return "the connection broke";
}

// A name that does not exist, or name servers that do not answer.
Error name_error(std::string_view text, const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  const bool is_unknown = text.find("not found") != std::string_view::npos ||
                          text.find("no data") != std::string_view::npos ||
                          text.find("not known") != std::string_view::npos;
  if (is_unknown)
    return {ErrorCode::kNotFound, "cannot find the host " + host + ": check the spelling or DNS"};
  return {ErrorCode::kClosed, "cannot find the host " + host + " now: DNS does not answer"};
}

// Returns nothing if the name of the host is not the cause.
std::optional<Error> dns_error(std::string_view text, const std::string& address) {
  if (text.find("dns resolution") == std::string_view::npos) return std::nullopt;
  return name_error(text, address);
}

}  // namespace

Error connection_error(std::string_view cause, const std::string& address, bool is_tls) {
  const std::string text = small_letters(cause);
  const std::string what = "hub at " + address + ": ";
  if (auto error = dns_error(text, address)) return *std::move(error);
  if (has_any(text, kOtherProgram))
    return {ErrorCode::kNotFound,
            what + "something else than a hub answers on this port, or it expects TLS (an invite)"};
  if (has_any(text, kHandshake))
    return {ErrorCode::kNotFound,
            what + (is_tls ? "no agreement on TLS: certificate missing, of another "
                             "authority, or no TLS there"
                           : "it closed at once; does it expect TLS (an invite)?")};
  return {ErrorCode::kClosed, (what + "it does not answer (").append(no_answer(text)) + ')'};
}

Error broken_connection(std::string_view cause, const std::string& address) {
  const std::string text = small_letters(cause);
  if (auto error = dns_error(text, address)) return *std::move(error);
  return {ErrorCode::kClosed, std::string("hub at " + address + ": ").append(no_answer(text))};
}

}  // namespace longhaul
