#include "src/core/store/listener.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

Listening open_all(uint16_t port, Reach reach) {
  Listening result;
  result.listeners.port = port;
  bool opened = true;
  if (reach == Reach::loopback) {
    opened = add(result, "127.0.0.1", false) && add(result, "::1", false);
  } else {
    opened = add(result, "::", true);
    if (opened && result.listeners.sockets.empty()) opened = add(result, "0.0.0.0", false);
  }
  if (opened && result.listeners.sockets.empty()) result.error = EADDRNOTAVAIL;
  if (result.error != 0) result.listeners = {};
  return result;
}

}  // namespace

Listening listen_on(uint16_t port, Reach reach) {
  constexpr int kTries = 16;  // a port that is free in one family may be taken in the other
  Listening result = open_all(port, reach);
  for (int i = 0; port == 0 && result.error == EADDRINUSE && i < kTries; ++i) result = open_all(port, reach);
  return result;
}

}  // namespace tutti::internal
