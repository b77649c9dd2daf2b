#include "src/core/store/host_port.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace tutti::internal {
namespace {

constexpr size_t kLongestHost = 255;

bool is_host_character(char c) { return c > ' ' && c < 0x7f && c != '[' && c != ']' && c != '/' && c != ','; }

Status bad(std::string_view text, std::string_view allowed) {
  return Status(Code::invalid_argument,
                fmt::format("\"{}\" is no address: {}", text.substr(0, kLongestHost + 1), allowed));
}

}  // namespace

Result<std::string> parse_host(std::string_view text) {
  std::string_view host = text;
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.size() > kLongestHost || !std::ranges::all_of(host, is_host_character))
    return bad(text, "allowed is a host name, an IPv4 address, or an IPv6 address with or without [ ]");
  const auto colons = std::ranges::count(host, ':');
  if (bracketed && colons < 2) return bad(text, "what stands in [ ] must be an IPv6 address");
  if (colons == 1) return bad(text, "a single ':' belongs to no host; the port is given apart");
  return std::string(host);
}

Result<HostPort> parse_host_port(std::string_view text) {
  constexpr std::string_view kForms = "allowed are host:port and [IPv6 address]:port with a port from 1 to 65535";
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad(text, kForms);
  const std::string_view host_text = text.substr(0, colon), port_text = text.substr(colon + 1);
  if (host_text.find(':') != std::string_view::npos && host_text.front() != '[') return bad(text, kForms);
  auto host = parse_host(host_text);
  uint16_t port = 0;
  const char* end = port_text.data() + port_text.size();
  const auto [stop, error] = std::from_chars(port_text.data(), end, port);
  if (!host || error != std::errc() || stop != end || port == 0) return bad(text, kForms);
  return HostPort{std::move(*host), port};
}

}  // namespace tutti::internal
