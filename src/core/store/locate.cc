#include "src/core/store/locate.h"

#include <fmt/core.h>
#include <netinet/in.h>

#include <algorithm>

#include "src/core/store/memory_board.h"
#include "src/core/store/store_file.h"

namespace tutti::internal {
namespace {

Address loopback(int family, uint16_t port) { return numeric_address(family == AF_INET6 ? "::1" : "127.0.0.1", port); }

// Without a secret the store listens on loopback alone: that is where an own address leads, and no other will do.
void stay_on_this_machine(StorePlace& place, const Rendezvous& rendezvous) {
  std::vector<Address> own;
  for (const Address& address : place.addresses)
    if (is_own_address(address)) own.push_back(loopback(address.unmapped().family(), address.port()));
  if (own.empty()) {
    place.error = Status(
        Code::invalid_argument,
        fmt::format("rank {}: {} ({}) is another machine, and without a secret a store serves its own machine only: "
                    "set TUTTI_SECRET to the same text on all ranks",
                    rendezvous.rank, rendezvous.text(), place.addresses.front().host()));
  }
  place.addresses = std::move(own);
}

// Those to which a chosen interface leads. The store then listens at 127.0.0.1 alone of what begins with 127, and a
// name may mean another of these on its own machine.
void keep_chosen(StorePlace& place, const Rendezvous& rendezvous) {
  if (rendezvous.interfaces.is_all() || place.addresses.empty()) return;
  std::vector<Address> kept;
  std::string others;
  for (const Address& address : place.addresses) {
    if (address.is_loopback())
      kept.push_back(loopback(address.unmapped().family(), address.port()));
    else if (is_reached_by(rendezvous.interfaces, address))
      kept.push_back(address);
    else
      others += (others.empty() ? "" : ", ") + address.host();
  }
  place.addresses = std::move(kept);
  if (!place.addresses.empty()) return;
  place.unknown_because = fmt::format("no interface of TUTTI_INTERFACE={} leads to {} ({})",
                                      rendezvous.interfaces.text(), rendezvous.text(), others);
  // A way may appear; an interface that nobody has is a wrong setting.
  place.error = chosen_interfaces(rendezvous.interfaces).status();
}

StorePlace by_name(const Rendezvous& rendezvous) {
  StorePlace place;
  place.credentials = {rendezvous.secret, rendezvous.label};
  const Resolved resolved = resolve(rendezvous.host, rendezvous.ports.front());
  if (resolved.kind != Resolved::Kind::ok) {
    place.unknown_because = resolved.error;
    place.unknown_name = resolved.kind == Resolved::Kind::unknown;
    return place;
  }
  place.addresses = resolved.addresses;
  if (rendezvous.secret.empty()) stay_on_this_machine(place, rendezvous);
  keep_chosen(place, rendezvous);
  std::vector<Address> with_ports;
  for (uint16_t port : rendezvous.ports)
    for (const Address& address : place.addresses) with_ports.push_back(address.with_port(port));
  place.addresses = std::move(with_ports);
  return place;
}

StorePlace by_file(const Rendezvous& rendezvous) {
  StorePlace place;
  auto found = read_store_file(rendezvous.name);
  if (!found.status.ok())
    place.error = found.status;
  else
    place.unknown_because = found.unknown_because;
  place.addresses = std::move(found.addresses);
  place.credentials = {std::move(found.secret), "file"};
  return place;
}

StorePlace by_memory(const Rendezvous& rendezvous) {
  StorePlace place;
  const auto notice = MemoryBoard::instance().find(rendezvous.name);
  if (!notice) {
    place.unknown_because = fmt::format("rank 0 has not come to memory:{} yet", rendezvous.name);
    return place;
  }
  place.addresses = {loopback(AF_INET, notice->port), loopback(AF_INET6, notice->port)};
  place.credentials = {notice->secret, "memory"};
  return place;
}

}  // namespace

StorePlace locate(const Rendezvous& rendezvous) {
  switch (rendezvous.kind) {
    case Rendezvous::Kind::file: return by_file(rendezvous);
    case Rendezvous::Kind::memory: return by_memory(rendezvous);
    default: return by_name(rendezvous);
  }
}

Published publish(const Rendezvous& rendezvous, uint16_t port, const std::string& secret) {
  if (rendezvous.kind == Rendezvous::Kind::memory) {
    const uint64_t id = MemoryBoard::instance().put(rendezvous.name, {port, secret});
    return {{}, [name = rendezvous.name, id] { MemoryBoard::instance().remove(name, id); }};
  }
  if (rendezvous.kind == Rendezvous::Kind::file) {
    auto chosen = chosen_addresses(rendezvous.interfaces);
    if (!chosen) return {chosen.status(), [] {}};
    std::vector<Address> addresses = std::move(*chosen);
    for (Address& address : addresses) address = address.with_port(port);
    auto file = write_store_file(rendezvous.name, addresses, secret);
    if (!file) return {file.status(), [] {}};
    return {{}, [path = rendezvous.name, id = *file] { remove_store_file(path, id); }};
  }
  return {{}, [] {}};
}

}  // namespace tutti::internal
