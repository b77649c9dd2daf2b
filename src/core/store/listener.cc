#include "src/core/store/listener.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace tutti::internal {
namespace {

constexpr int kBacklog = 1024;

struct Opened {
  Socket socket;
  int error = 0;
};

Opened open_one(const Address& address, bool both_families) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket) return {{}, errno};
  const int on = 1, only_v6 = both_families ? 0 : 1;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6 && setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6) != 0)
    return {{}, errno};
  if (bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) return {{}, errno};
  if (listen(socket.fd(), kBacklog) != 0) return {{}, errno};
  return {std::move(socket), 0};
}

// The machine has no such address family: the other one must do.
bool is_missing(int error) {
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL || error == EPROTONOSUPPORT || error == ENOPROTOOPT;
}

// Adds a listener on `host` to the others; false when that failed for another reason than a missing address family.
bool add(Listening& result, const char* host, bool both_families) {
  const Address address = numeric_address(host, result.listeners.port);
  Opened opened = open_one(address, both_families);
  result.error = is_missing(opened.error) ? 0 : opened.error;
  if (!opened.socket) {
    result.what = fmt::format("listen on {}", address.text());
    return result.error == 0;
  }
  result.listeners.port = local_address(opened.socket.fd()).port();
  result.listeners.sockets.push_back(std::move(opened.socket));
  return true;
}

Listening finish(Listening result, bool opened) {
  if (opened && result.listeners.sockets.empty()) result.error = EADDRNOTAVAIL;
  if (result.error != 0) result.listeners = {};
  return result;
}

Listening open_everywhere(uint16_t port) {
  Listening result;
  result.listeners.port = port;
  bool opened = add(result, "::", true);
  if (opened && result.listeners.sockets.empty()) opened = add(result, "0.0.0.0", false);
  return finish(std::move(result), opened);
}

Listening open_each(uint16_t port, const std::vector<std::string>& hosts) {
  Listening result;
  result.listeners.port = port;
  const bool opened =
      std::ranges::all_of(hosts, [&](const std::string& host) { return add(result, host.c_str(), false); });
  return finish(std::move(result), opened);
}

// A port that is free at one address may be taken at another.
template <class Open>
Listening try_ports(uint16_t port, Open open) {
  constexpr int kTries = 16;
  Listening result = open();
  for (int i = 0; port == 0 && result.error == EADDRINUSE && i < kTries; ++i) result = open();
  return result;
}

}  // namespace

Listening listen_on(uint16_t port, Reach reach) {
  if (reach == Reach::loopback) return listen_at(port, {});
  return try_ports(port, [&] { return open_everywhere(port); });
}

Listening listen_at(uint16_t port, const std::vector<Address>& addresses) {
  std::vector<std::string> hosts{"127.0.0.1", "::1"};
  for (const Address& address : addresses)
    if (!address.is_loopback()) hosts.push_back(address.host());
  return try_ports(port, [&] { return open_each(port, hosts); });
}

std::string no_free_port(const std::vector<uint16_t>& range) {
  return fmt::format("every port of TUTTI_PORT_RANGE={}-{} is in use", range.front(), range.back());
}

}  // namespace tutti::internal
