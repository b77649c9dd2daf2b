// What a peer publishes of its ports: decoded, encoded again, and taken for paths with a rank of every kind of port.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "transport/verbs/address.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

Gid gid(int index, bool is_v2, int prefix_bits, GidBytes raw) {
  return {.raw = raw, .index = index, .is_v2 = is_v2, .prefix_bits = prefix_bits};
}

Address own_address() {
  const GidBytes link = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const GidBytes global = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  const GidBytes ipv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  Address address;
  address.rank = 0;
  address.ports = {
      {.name = "e:1", .mtu = 3, .gids = {gid(3, true, 120, ipv4), gid(2, false, 120, ipv4), gid(1, true, 64, link)}},
      {.name = "f:1",
       .mtu = 5,
       .gids = {gid(0, true, 61, global), gid(4, false, 0, global), gid(5, false, 64, link)},
       .ping_pair = 17},
      {.name = "i:1", .is_infiniband = true, .lid = 1, .mtu = 5, .gids = {gid(0, false, 64, link)}},
      {.name = "j:1",
       .is_infiniband = true,
       .lid = 2,
       .mtu = 5,
       .gids = {gid(0, false, 64, global)},
       .listener = {.ip = ipv4, .port = 4791}}};
  return address;
}

bool is_within(const Path& path, const Address& own, const Address& peer) {
  return path.own_port >= 0 && static_cast<size_t>(path.own_port) < own.ports.size() && path.peer_port >= 0 &&
         static_cast<size_t>(path.peer_port) < peer.ports.size() && path.mtu >= 1 && path.mtu <= 5 &&
         path.peer_gid <= kMostGidIndex;
}

void run(std::string_view input) {
  static const Address own = own_address();
  const auto peer = Address::decode(input);
  if (!peer) return;
  const Address& address = peer.value();
  if (address.encode() != input) std::abort();  // one form for one address
  if (address.ports.size() > kMaxPorts) std::abort();
  const auto paths = paths_between(own, address, {});
  if (!paths) return;
  uint32_t own_seen = 0, peer_seen = 0;
  for (const Path& path : paths.value()) {
    if (!is_within(path, own, address)) std::abort();
    if (own_seen >> path.own_port & 1 || peer_seen >> path.peer_port & 1) std::abort();
    own_seen |= 1u << path.own_port;
    peer_seen |= 1u << path.peer_port;
    (void)reversed(path, own.ports[static_cast<size_t>(path.own_port)]);
  }
}

}  // namespace
}  // namespace tutti::internal::verbs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tutti::internal::verbs::run(text);
  // Behind the first checks, too.
  tutti::internal::verbs::run("TVA\x03" + text);
  return 0;
}
