// What a rank publishes of its ports, and the paths between two ranks that follow from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/gid.h"
#include "src/base/status.h"
#include "transport/verbs/settings.h"

namespace tutti::internal::verbs {

// What an address may hold; more of it is not sent.
inline constexpr size_t kMostGids = 16;  // of a port
inline constexpr size_t kMostNameBytes = 80;
// A queue pair names its GID by one byte.
inline constexpr int kMostGidIndex = 255;
inline constexpr uint32_t kMostPairNumber = 0xffffff;

struct Gid {
  GidBytes raw{};
  int index = 0;
  bool is_v2 = false;   // RoCE v2: routable by IP
  int prefix_bits = 0;  // of its network, counted in the whole 128 bits; 0: unknown

  bool is_ipv4() const;        // ::ffff:a.b.c.d
  bool is_link_local() const;  // fe80::, 169.254.c.d
  bool operator==(const Gid&) const = default;
};
std::string to_string(const Gid& gid);          // "::ffff:10.0.0.1"
std::string short_text(const GidBytes& bytes);  // "10.0.0.1"

// Where a rank can be asked for a connection by rdma_cm.
struct Listener {
  GidBytes ip{};      // IPv6, or IPv4 mapped into it
  uint16_t port = 0;  // 0: nowhere

  bool is_there() const { return port != 0; }
  bool operator==(const Listener&) const = default;
};
std::string to_string(const Listener& listener);  // "10.0.0.1 port 4791"

struct PortAddress {
  std::string name = {};  // "mlx5_0:1", for messages
  bool is_infiniband = false;
  uint16_t lid = 0;
  uint8_t mtu = 0;             // as enum ibv_mtu
  std::vector<Gid> gids = {};  // best first
  Listener listener = {};
  uint32_t ping_pair = 0;  // number of the queue pair that takes pings; 0: there is none

  bool operator==(const PortAddress&) const = default;
};

struct Address {
  int rank = -1;
  uint64_t nonce = 0;           // of this transport: a stale or foreign request does not know it
  bool through_rdmacm = false;  // as its settings say
  std::vector<PortAddress> ports = {};

  std::string encode() const;
  // Errors: invalid_argument. Lengths are bounded.
  static Result<Address> decode(std::string_view text);
  bool operator==(const Address&) const = default;
};

// How a queue pair on one of our ports reaches one of the peer's.
struct Path {
  int own_port = 0;  // index
  int peer_port = 0;
  int own_gid = -1;   // index in the port's table (Gid::index)
  int peer_gid = -1;  // likewise, of the peer
  GidBytes peer_gid_raw{};
  bool is_global = false;  // by GID (always on RoCE; on InfiniBand where the subnets differ)
  uint16_t peer_lid = 0;
  uint8_t mtu = 0;  // the smaller of both ends

  bool operator==(const Path&) const = default;
};

// One path for each of our ports that reaches the peer, at most one for each of the peer's ports: those on the same
// subnet first; RoCE v2 before v1; IPv4-mapped or global addresses before link-local ones. Our i-th port goes to the
// peer's i-th where nothing else decides. Where the two connect by rdma_cm, both ports of each path have a listener.
// Errors: unsupported, with the reason for each pair of ports.
Result<std::vector<Path>> paths_between(const Address& own, const Address& peer, const Settings& settings);

// Whether the two connect by rdma_cm rather than by letters: one of them wants to, or a path goes through a router
// between InfiniBand subnets, whose address only rdma_cm finds out.
bool by_rdmacm(const Address& own, const Address& peer, const std::vector<Path>& paths);

// The same path seen from the other end. `own`: our port of it, which the other end sees as the peer's.
Path reversed(const Path& path, const PortAddress& own);

}  // namespace tutti::internal::verbs
