// Pairs: in round k = 0 .. size-1, ranks r and (k - r) mod size are partners. Each rank meets each other one in exactly
// one round, and itself in the one that is left. 5 ranks:
//
//   round   0    1    2    3    4
//   pairs   0    0-1  0-2  0-3  0-4
//           1-4  2-4  1    1-2  1-3
//           2-3  3    3-4  4    2
//
// Both partners do the round's exchange at the same place of their order, so that a bound on what is in flight, and
// one's waiting for the other, never make a circle: what a round waits for is in that round or an earlier one.
#pragma once

namespace tutti::internal {

// May be `rank` itself.
constexpr int partner(int rank, int size, int round) { return (round + size - rank) % size; }

}  // namespace tutti::internal
