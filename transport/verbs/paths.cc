// Which pairs of ports two ranks talk over, and by which addresses. Pure arithmetic: both ranks' addresses in, paths
// out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "transport/verbs/address.h"
#include "transport/verbs/registrar.h"

namespace tutti::internal::verbs {
namespace {

// How well two ends fit together; higher is better.
enum Fit : int {
  kNone,
  kUnprovenV1,  // whether both are on one link cannot be seen from the addresses
  kUnprovenV2,
  kRouted,  // different networks, and addresses that routers know
  kSameNetworkV1,
  kSameNetworkV2,
  kBestFit = kSameNetworkV2,
};

struct Pair {
  int fit = kNone;
  Path path;
  std::string why_not;
};
using PairTable = std::array<std::array<Pair, kMaxPorts>, kMaxPorts>;  // [own][peer]

bool agree(const GidBytes& a, const GidBytes& b, int bits) {
  const int whole = bits / 8;
  if (!std::equal(a.begin(), a.begin() + whole, b.begin())) return false;
  return bits % 8 == 0 || ((a[whole] ^ b[whole]) >> (8 - bits % 8)) == 0;
}

// Each is in the other's network. One and the same GID is one port, whatever is known of its network.
bool same_network(const Gid& own, const Gid& peer) {
  if (own.raw == peer.raw) return true;
  return own.prefix_bits > 0 && peer.prefix_bits > 0 &&
         agree(own.raw, peer.raw, std::max(own.prefix_bits, peer.prefix_bits));
}

int fit_of(const Gid& own, const Gid& peer) {
  if (is_nowhere(own.raw) || is_nowhere(peer.raw)) return kNone;
  if (own.is_v2 != peer.is_v2 || own.is_ipv4() != peer.is_ipv4() || own.is_link_local() != peer.is_link_local())
    return kNone;
  if (own.is_link_local()) return own.is_v2 ? kUnprovenV2 : kUnprovenV1;
  if (same_network(own, peer)) return own.is_v2 ? kSameNetworkV2 : kSameNetworkV1;
  if (own.is_v2) return kRouted;
  // Version 1 ends at the link, and another network is most likely another link.
  return own.prefix_bits == 0 || peer.prefix_bits == 0 ? kUnprovenV1 : kNone;
}

std::string gids_text(std::span<const Gid> gids) {
  std::vector<std::string> words;
  for (const Gid& gid : gids) words.push_back(fmt::format("{} ({})", to_string(gid), gid.is_v2 ? "v2" : "v1"));
  return gids.empty() ? "none" : fmt::format("{}", fmt::join(words, ", "));
}

void set_global(Path& path, const Gid& own, const Gid& peer) {
  path.is_global = true;
  path.own_gid = own.index;
  path.peer_gid = peer.index;
  path.peer_gid_raw = peer.raw;
}

void join_ethernet(std::span<const Gid> own, std::span<const Gid> peer, Pair& pair) {
  for (const Gid& mine : own)
    for (const Gid& other : peer)
      if (const int fit = fit_of(mine, other); fit > pair.fit) {
        pair.fit = fit;
        set_global(pair.path, mine, other);
      }
  if (pair.fit == kNone)
    pair.why_not = fmt::format("no GIDs of one kind that can meet: {}; {}", gids_text(own), gids_text(peer));
}

// "" where both listen.
std::string why_not_by_rdmacm(const PortAddress& own, const PortAddress& peer) {
  if (own.listener.is_there() && peer.listener.is_there()) return {};
  return fmt::format("{} has no rdma_cm listener", own.listener.is_there() ? peer.name : own.name);
}

// By LID inside a subnet, by GID through a router between subnets that have prefixes of their own. `why_not_routed`:
// what stands against the latter.
void join_infiniband(std::span<const Gid> own, std::span<const Gid> peer, uint16_t own_lid,
                     const std::string& why_not_routed, Pair& pair) {
  constexpr int kPrefixBits = 64;
  if (own.empty() || peer.empty()) {
    pair.why_not = "an InfiniBand port without a GID";
  } else if (agree(own[0].raw, peer[0].raw, kPrefixBits)) {
    if (own_lid != 0 && pair.path.peer_lid != 0)
      pair.fit = kSameNetworkV2;
    else
      pair.why_not = "an InfiniBand port without a LID: no subnet manager has seen it";
  } else if (own[0].is_link_local() || peer[0].is_link_local()) {
    pair.why_not =
        fmt::format("different InfiniBand subnets, and one has the default prefix, which is not routed: {}; {}",
                    to_string(own[0]), to_string(peer[0]));
  } else if (!why_not_routed.empty()) {
    pair.why_not = fmt::format("different InfiniBand subnets, and {}", why_not_routed);
  } else {
    pair.fit = kRouted;
    set_global(pair.path, own[0], peer[0]);
  }
}

// Our GIDs that the settings allow.
std::vector<Gid> allowed(const std::vector<Gid>& gids, const Settings& settings) {
  std::vector<Gid> result;
  std::ranges::copy_if(gids, std::back_inserter(result),
                       [&](const Gid& gid) { return settings.gid_index < 0 || gid.index == settings.gid_index; });
  return result;
}

Pair join(const PortAddress& own, const PortAddress& peer, bool wants_rdmacm, const Settings& settings) {
  Pair pair;
  pair.path.peer_lid = peer.lid;
  pair.path.mtu = std::min(own.mtu, peer.mtu);
  const std::vector<Gid> gids = allowed(own.gids, settings);
  const std::string why_not_by_cm = why_not_by_rdmacm(own, peer);
  if (own.is_infiniband != peer.is_infiniband)
    pair.why_not = "InfiniBand and Ethernet do not meet";
  else if (gids.empty() && !own.gids.empty())
    pair.why_not = fmt::format("there is no GID {} as TUTTI_IB_GID_INDEX asks", settings.gid_index);
  else if (wants_rdmacm && !why_not_by_cm.empty())
    pair.why_not = why_not_by_cm;
  else if (own.is_infiniband)
    join_infiniband(gids, peer.gids, own.lid, why_not_by_cm, pair);
  else
    join_ethernet(gids, peer.gids, pair);
  return pair;
}

// Gives as many ports as possible a partner, the best fits first: for one fit after the other the largest matching by
// augmenting paths. Who has a partner keeps one, of the same fit.
class Matching {
 public:
  Matching(const PairTable& table, size_t own_count, size_t peer_count)
      : table_(table), own_count_(own_count), peer_count_(peer_count) {
    partner_of_own_.fill(-1);
    partner_of_peer_.fill(-1);
  }

  // The pairs, best first.
  std::vector<Path> paths() {
    std::vector<Path> result;
    for (int fit = kBestFit; fit > kNone; --fit) {
      for (size_t own = 0; own < own_count_; ++own) {
        asked_ = {};
        if (partner_of_own_[own] < 0) seek(own, fit);
      }
      for (size_t own = 0; own < own_count_; ++own)
        if (const int peer = partner_of_own_[own]; peer >= 0 && table_[own][peer].fit == fit)
          result.push_back(table_[own][peer].path);
    }
    return result;
  }

 private:
  bool seek(size_t own, int fit) {
    for (size_t step = 0; step < peer_count_; ++step) {
      const size_t peer = (own + step) % peer_count_;  // its own number first
      if (table_[own][peer].fit != fit || asked_[peer]) continue;
      asked_[peer] = true;
      const int holder = partner_of_peer_[peer];
      if (holder >= 0 && (table_[holder][peer].fit != fit || !seek(static_cast<size_t>(holder), fit))) continue;
      partner_of_own_[own] = static_cast<int>(peer);
      partner_of_peer_[peer] = static_cast<int>(own);
      return true;
    }
    return false;
  }

  const PairTable& table_;
  const size_t own_count_;
  const size_t peer_count_;
  std::array<int, kMaxPorts> partner_of_own_;
  std::array<int, kMaxPorts> partner_of_peer_;
  std::array<bool, kMaxPorts> asked_{};
};

}  // namespace

Result<std::vector<Path>> paths_between(const Address& own, const Address& peer, const Settings& settings) {
  const size_t own_count = std::min(own.ports.size(), kMaxPorts);
  const size_t peer_count = std::min(peer.ports.size(), kMaxPorts);
  PairTable table;
  std::vector<std::string> reasons;
  for (size_t i = 0; i < own_count; ++i)
    for (size_t j = 0; j < peer_count; ++j) {
      table[i][j] = join(own.ports[i], peer.ports[j], own.through_rdmacm || peer.through_rdmacm, settings);
      table[i][j].path.own_port = static_cast<int>(i);
      table[i][j].path.peer_port = static_cast<int>(j);
      if (!table[i][j].why_not.empty())
        reasons.push_back(fmt::format("{} and its {}: {}", own.ports[i].name, peer.ports[j].name, table[i][j].why_not));
    }
  std::vector<Path> paths = Matching(table, own_count, peer_count).paths();
  if (by_rdmacm(own, peer, paths))
    std::erase_if(paths, [&](const Path& path) {
      return !why_not_by_rdmacm(own.ports[static_cast<size_t>(path.own_port)],
                                peer.ports[static_cast<size_t>(path.peer_port)])
                  .empty();
    });
  if (!paths.empty()) return paths;
  if (own_count == 0) reasons.emplace_back("this rank has no RDMA port");
  if (peer_count == 0) reasons.emplace_back("it has no RDMA port");
  return Status(Code::unsupported, fmt::format("no RDMA path to rank {}: {}", peer.rank, fmt::join(reasons, "; ")));
}

bool by_rdmacm(const Address& own, const Address& peer, const std::vector<Path>& paths) {
  return own.through_rdmacm || peer.through_rdmacm || std::ranges::any_of(paths, [&](const Path& path) {
           return path.is_global && own.ports[static_cast<size_t>(path.own_port)].is_infiniband;
         });
}

Path reversed(const Path& path, const PortAddress& own) {
  Path result = path;
  std::swap(result.own_port, result.peer_port);
  std::swap(result.own_gid, result.peer_gid);
  const auto gid = std::ranges::find(own.gids, path.own_gid, &Gid::index);
  result.peer_gid_raw = path.is_global && gid != own.gids.end() ? gid->raw : GidBytes{};
  result.peer_lid = own.lid;
  return result;
}

}  // namespace tutti::internal::verbs
