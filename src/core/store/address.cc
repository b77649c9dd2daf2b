// The half of socket.h about addresses and names.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "src/core/store/socket.h"

namespace tutti::internal {
namespace {

const sockaddr_in& v4(const Address& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
const sockaddr_in6& v6(const Address& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }

Address from_sockaddr(const sockaddr* source, socklen_t length) {
  Address address;
  std::memcpy(&address.storage, source, length);
  address.length = length;
  return address;
}

template <class Call>
Address named_by(Call call, int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (call(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address.unmapped();
}

Resolved look_up(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  Resolved resolved;
  if (error != 0) {
    resolved.kind = error == EAI_AGAIN || error == EAI_SYSTEM || error == EAI_MEMORY ? Resolved::Kind::temporary
                                                                                     : Resolved::Kind::unknown;
    resolved.error = fmt::format("the name \"{}\" cannot be resolved: {}", host,
                                 error == EAI_SYSTEM ? std::generic_category().message(errno) : gai_strerror(error));
    return resolved;
  }
  for (const addrinfo* item = list; item; item = item->ai_next) {
    if (item->ai_family != AF_INET && item->ai_family != AF_INET6) continue;
    const Address address = from_sockaddr(item->ai_addr, item->ai_addrlen);
    if (std::ranges::find(resolved.addresses, address) == resolved.addresses.end())
      resolved.addresses.push_back(address);
  }
  return resolved;
}

}  // namespace

uint16_t Address::port() const { return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port); }

Address Address::with_port(uint16_t port) const {
  Address address = *this;
  if (family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  return address;
}

Address Address::unmapped() const {
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(*this).sin6_addr)) return *this;
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = v6(*this).sin6_port;
  std::memcpy(&plain.sin_addr, v6(*this).sin6_addr.s6_addr + 12, 4);
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&plain), sizeof plain);
}

bool Address::is_loopback() const {
  const Address plain = unmapped();
  if (plain.family() == AF_INET) return ntohl(v4(plain).sin_addr.s_addr) >> 24 == 127;
  return plain.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(plain).sin6_addr);
}

bool Address::is_link_local() const {
  const Address plain = unmapped();
  if (plain.family() == AF_INET) return ntohl(v4(plain).sin_addr.s_addr) >> 16 == (169 << 8 | 254);
  return plain.family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(plain).sin6_addr);
}

std::string Address::host() const {
  char host[NI_MAXHOST] = "?";
  if (length > 0)
    getnameinfo(reinterpret_cast<const sockaddr*>(&storage), length, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

std::string Address::text() const {
  if (length == 0) return "?";
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port()) : fmt::format("{}:{}", host(), port());
}

Address numeric_address(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  return from_sockaddr(list->ai_addr, list->ai_addrlen);
}

Address local_address(int fd) { return named_by(getsockname, fd); }
Address remote_address(int fd) { return named_by(getpeername, fd); }

Address source_towards(const Address& address) {
  const Address plain = address.unmapped().with_port(1);
  // Connecting a datagram socket asks for the way; nothing is sent.
  const Socket probe(socket(plain.family(), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  if (!probe || connect(probe.fd(), reinterpret_cast<const sockaddr*>(&plain.storage), plain.length) != 0) return {};
  return local_address(probe.fd());
}

bool is_own_address(const Address& address) {
  if (address.is_loopback()) return true;
  // What is sent to an own address comes from that address.
  const Address near = source_towards(address);
  return near.length > 0 && (near.is_loopback() || near.host() == address.unmapped().host());
}

Resolved resolve(const std::string& host, uint16_t port) {
  Resolved resolved = look_up(host, port);
  // "name." is a full name to the name service, which may not even answer, but not one of /etc/hosts.
  if (resolved.kind != Resolved::Kind::ok && host.size() > 1 && host.back() == '.') {
    Resolved without_dot = look_up(host.substr(0, host.size() - 1), port);
    if (without_dot.kind == Resolved::Kind::ok) return without_dot;
  }
  return resolved;
}

}  // namespace tutti::internal
