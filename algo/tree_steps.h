// Reduction up a tree and broadcast down a tree, in segments. The shape comes from outside; trees of any kind will do.
#pragma once

#include "algo/builder.h"
#include "algo/shapes/tree.h"

namespace tutti::internal {

// The root's output = all inputs, each rank's own first, then its children's in their order.
void tree_reduce(Builder& builder, const Tree& tree);
// Everyone's output = the root's `source`.
void tree_broadcast(Builder& builder, const Tree& tree, Slice source);

}  // namespace tutti::internal
