// What the 16 bytes of an RDMA address (GID) say: the verbs transport chooses by it, and tutti-info shows what is
// chosen.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tutti::internal {

using GidBytes = std::array<uint8_t, 16>;

// ::ffff:a.b.c.d
constexpr bool is_ipv4(const GidBytes& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](uint8_t byte) { return byte == 0; }) && gid[10] == 0xff &&
         gid[11] == 0xff;
}

// Means something on one link only: fe80::/10, 169.254.0.0/16.
constexpr bool is_link_local(const GidBytes& gid) {
  if (is_ipv4(gid)) return gid[12] == 169 && gid[13] == 254;
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

// No other port has it as its own: zero, loopback, multicast.
constexpr bool is_nowhere(const GidBytes& gid) {
  if (is_ipv4(gid)) return gid[12] == 0 || gid[12] == 127 || gid[12] >= 224;
  return gid[0] == 0xff ||
         (gid[15] <= 1 && std::all_of(gid.begin(), gid.begin() + 15, [](uint8_t byte) { return byte == 0; }));
}

// How good a GID is for a peer of which nothing is known; higher is better.
enum class GidClass { link_local_v1, global_v1, link_local_v2, global_v2 };
constexpr GidClass class_of(const GidBytes& gid, bool is_v2) {
  if (is_v2) return is_link_local(gid) ? GidClass::link_local_v2 : GidClass::global_v2;
  return is_link_local(gid) ? GidClass::link_local_v1 : GidClass::global_v1;
}

}  // namespace tutti::internal
