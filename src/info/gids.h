// The addresses (GIDs) of an RDMA device's port as the kernel shows them, and the one to take for a peer that is
// reached by routing.
#pragma once

#include <string>
#include <vector>

namespace tutti::internal {

struct Gid {
  int index = 0;
  std::string text;  // "0000:0000:0000:0000:0000:ffff:0a00:0001"
  std::string type;  // "RoCE v2", "IB/RoCE v1"
  std::string net;   // its net device
};

// How good a GID is for a peer on another network; higher is better.
enum class GidClass { link_local_v1, global_v1, link_local_v2, global_v2 };
GidClass class_of(const Gid& gid);
const char* to_string(GidClass gid_class);  // "global, RoCE v2"

// Entries that are not empty. The table may have holes.
std::vector<Gid> read_gids(const std::string& rdma, int port, const std::string& sysfs_root = "/sys");

// The position in `gids` of the one to take; -1: none.
int choose_gid(const std::vector<Gid>& gids);

}  // namespace tutti::internal
