// The chain: a tree in which each rank has one child.
//
//   root -> root+1 -> root+2 -> ... -> root-1
#pragma once

#include "algo/shapes/tree.h"

namespace tutti::internal {

inline Tree chain_tree(int rank, int size, int root) {
  Tree tree;
  tree.depth = size - 1;
  if (rank != root) tree.parent = (rank + size - 1) % size;
  if ((rank + 1) % size != root) tree.children.push_back((rank + 1) % size);
  return tree;
}

}  // namespace tutti::internal
