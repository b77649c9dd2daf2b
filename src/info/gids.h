// The addresses (GIDs) of an RDMA device's port as the kernel shows them, and the one that the verbs transport takes
// where the peer has the like: with a peer at hand, it first looks for one on the peer's subnet.
#pragma once

#include <string>
#include <vector>

#include "src/base/gid.h"

namespace tutti::internal {

struct Gid {
  int index = 0;
  std::string text;  // "0000:0000:0000:0000:0000:ffff:0a00:0001"
  std::string type;  // "RoCE v2", "IB/RoCE v1"
  std::string net;   // its net device
};

GidClass class_of(const Gid& gid);
const char* to_string(GidClass gid_class);  // "global, RoCE v2"

// Entries that a peer could use. The table may have holes.
std::vector<Gid> read_gids(const std::string& rdma, int port, const std::string& sysfs_root = "/sys");

// The position in `gids` of the one to take; -1: none.
int choose_gid(const std::vector<Gid>& gids);

}  // namespace tutti::internal
