// The GIDs of a port as the kernel has them now. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <vector>

#include "src/base/gid.h"
#include "src/base/status.h"
#include "transport/verbs/address.h"

namespace tutti::internal::verbs {

// An address of one of this host's net devices.
struct NetAddress {
  GidBytes raw{};           // an IPv4 address mapped into IPv6
  int prefix_bits = 0;      // counted in the 128 bits
  unsigned net_device = 0;  // the kernel's number of it
};
std::vector<NetAddress> net_addresses();

// The network that `gid` is in, by the address of its net device that it was made of; 0: unknown.
int prefix_bits_of(const GidBytes& gid, unsigned net_device, std::span<const NetAddress> addresses);

// Without those that no peer could use, the best first, equals by index.
std::vector<Gid> best_first(std::vector<Gid> gids);

// `best_first` of the port's table. Errors: unsupported, with the reason.
Result<std::vector<Gid>> read_gid_table(ibv_context* context, int port);

}  // namespace tutti::internal::verbs
