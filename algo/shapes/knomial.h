// The k-nomial tree. With radix 2 and 8 ranks:
//
//        0
//      / | \          rank 4's subtree is 4..7, rank 2's is 2..3: each subtree is a run of ranks
//     1  2  4
//        |  | \       Write a rank in digits to the base `radix`. Its parent has the lowest digit that is not 0
//        3  5  6      cleared; its children have one digit below that set to 1 .. radix-1.
//              |
//              7
//
// The tree is drawn for root 0; for another root, all ranks are turned by it: place 0 is the root, place 1 root+1, ...
#pragma once

#include "algo/shapes/tree.h"

namespace tutti::internal {

Tree knomial_tree(int rank, int size, int root, int radix);

// How many consecutive places, from its own on, a rank's subtree covers. `place` is (rank - root) mod size.
int knomial_subtree(int place, int size, int radix);

}  // namespace tutti::internal
