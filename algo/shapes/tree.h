// A rooted tree over the ranks, as one rank sees it.
#pragma once

#include <vector>

namespace tutti::internal {

struct Tree {
  int parent = -1;            // -1: this rank is the root
  std::vector<int> children;  // a rank, then the subtrees of its children in this order, stand in the tree's rank order
  int depth = 0;              // of the whole tree: hops from the root to the farthest rank
};

}  // namespace tutti::internal
